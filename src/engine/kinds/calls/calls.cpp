#include "engine/kinds/calls/calls.hpp"

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/idempotency/key.hpp"

namespace baton::engine {

using call::CallKey;

namespace {

std::unexpected<Refused> refuse(Refusal refusal, std::string why) {
  return std::unexpected(Refused{refusal, std::move(why), {}});
}

std::unexpected<Refused> not_found() {
  return refuse(Refusal::call_not_found, "there is no such service call");
}

std::unexpected<Refused> not_possible(call::Conflict why, const call::Call& call) {
  using enum call::Conflict;
  const std::string is = "the call is " + std::string(name(call.status));
  switch (why) {
    case not_due: return refuse(Refusal::not_possible, "the call is not due before " + to_iso(call.due_at));
    case not_scheduled: return refuse(Refusal::not_possible, is + ", not Scheduled");
    case not_running: return refuse(Refusal::not_possible, is + ", not Running");
    case not_over: return refuse(Refusal::not_possible, is + ": it can be repeated when it has ended");
    case request_lost:
      return refuse(Refusal::not_possible,
                    "what the call was to send is not stored any more, so it cannot be repeated");
  }
  return refuse(Refusal::not_possible, is);
}

DueCall waiting(const call::Call& call, std::optional<Time> was) {
  return {{call.tenant_id, call.origin}, {call.due_at, call.service_call_id}, was};
}

}  // namespace

// --- loading

void Calls::want(const SubmitCalls& c, call::LoadRequest& needs) {
  for (const NewCall& each : c.calls) {
    needs.calls.push_back(each.key);
    if (each.idempotency_key) needs.idempotency_keys.emplace_back(each.key.tenant, *each.idempotency_key);
  }
}
void Calls::want(const RepeatCall& c, call::LoadRequest& needs) {
  needs.calls.push_back(c.origin);
  needs.calls.push_back({c.origin.tenant, c.new_id});
  needs.requests.push_back(c.origin);
  if (c.idempotency_key) needs.idempotency_keys.emplace_back(c.origin.tenant, *c.idempotency_key);
}
void Calls::want(const ChangeCall& c, call::LoadRequest& needs) { needs.calls.push_back(c.key); }
void Calls::want(const StartCalls& c, call::LoadRequest& needs) {
  needs.calls.insert(needs.calls.end(), c.keys.begin(), c.keys.end());
  needs.requests.insert(needs.requests.end(), c.keys.begin(), c.keys.end());
}
void Calls::want(const EndCalls& c, call::LoadRequest& needs) {
  for (const CallOutcome& each : c.outcomes) needs.calls.push_back(each.key);
}
void Calls::want(const RebuildCalls& c, call::LoadRequest& needs) {
  needs.streams.insert(needs.streams.end(), c.keys.begin(), c.keys.end());
}

void Calls::add(call::Loaded loaded) {
  for (call::Call& row : loaded.calls) {
    const CallKey key = row.key();
    calls_.try_emplace(key, Slot{.call = std::move(row)});
  }
  for (const CallKey& key : loaded.without_row) calls_.at(key).has_row = false;
  for (call::Request& row : loaded.requests) {
    CallKey key{row.tenant_id, row.service_call_id};
    requests_.try_emplace(std::move(key), std::move(row));
  }
  for (call::IdempotencyKey& row : loaded.idempotency_keys) {
    Key key{row.tenant_id, row.idempotency_key};
    keys_.try_emplace(std::move(key), std::move(row));
  }
}

call::LoadRequest Calls::named_by_keys() const {
  call::LoadRequest needs;
  for (const auto& [key, row] : keys_)
    if (!calls_.contains({key.first, row.service_call_id}))
      needs.calls.push_back({key.first, row.service_call_id});
  return needs;
}

Calls::Slot* Calls::find(const CallKey& key) {
  const auto it = calls_.find(key);
  return it == calls_.end() ? nullptr : &it->second;
}

// --- deciding

void Calls::record(Slot& slot, const call::Event& event, const std::string& causation_id) {
  call::Call& row = slot.call;
  call::EventRow fact{.tenant_id = row.tenant_id,
                      .service_call_id = row.service_call_id,
                      .version = row.version + 1,
                      .event_type = call::type_of(event),
                      .occurred_at = now_,
                      .correlation_id = row.correlation_id,
                      .causation_id = causation_id,
                      .data = call::to_json(event)};
  const auto was = row.version > 1 ? std::optional{row.due_at} : std::nullopt;
  call::apply(fact, event, row);
  slot.changed = !MUTANT(call_row_not_written);
  if (fact.event_type == call::EventType::scheduled) scheduled_.push_back(waiting(row, was));
  writes_.events_new.push_back(std::move(fact));
}

// There is a place for it, so its start need not be asked for. What was given a time last is this call.
void Calls::begin_at_once(Slot& slot, const NewCall& wanted) {
  const auto event = call::start(slot.call, now_);
  if (!event) return;  // the clock was set back
  record(slot, *event, wanted.place ? wanted.place->token() : "");
  scheduled_.back().begun =
      std::make_shared<DueCall::Begun>(StartedCall{slot.call, requests_.at(wanted.key)}, wanted.place);
}

std::optional<std::expected<CallReply, Refused>> Calls::made_before(const NewCall& wanted) {
  if (const auto* there = find(wanted.key)) return CallReply{there->call, false};
  if (!wanted.idempotency_key || MUTANT(call_key_ignored)) return std::nullopt;
  const Key key{wanted.key.tenant, *wanted.idempotency_key};
  const auto used = keys_.find(key);
  switch (idempotency::judge(used == keys_.end() ? nullptr : &used->second.request_hash, wanted.request_hash)) {
    case idempotency::Use::reused:
      return refuse(Refusal::idempotency_key_reused, std::string(idempotency::reused_message));
    case idempotency::Use::same: {
      const auto* first = find({key.first, used->second.service_call_id});
      if (!first) return refuse(Refusal::call_not_found, "the call of this idempotency key is gone");
      return CallReply{first->call, false};
    }
    case idempotency::Use::fresh: break;
  }
  const call::IdempotencyKey row{key.first, key.second, wanted.key.id, wanted.request_hash};
  keys_.emplace(key, row);
  writes_.keys_new.push_back(row);
  return std::nullopt;
}

std::expected<CallReply, Refused> Calls::submit(const NewCall& wanted, std::optional<std::string> repeat_of) {
  if (auto before = made_before(wanted)) return *std::move(before);
  Slot& slot = calls_[wanted.key];
  call::Submission made = call::submit(
      wanted.key, {wanted.name, wanted.request_spec, now_, wanted.tags, wanted.origin, std::move(repeat_of)},
      wanted.due_at, wanted.correlation_id, now_);
  slot.is_new = true;
  slot.call = std::move(made.call);
  for (const call::Event& event : made.events) record(slot, event, wanted.causation_id);
  call::Request request = wanted.request;
  request.tenant_id = wanted.key.tenant;
  request.service_call_id = wanted.key.id;
  requests_.try_emplace(wanted.key, request);
  writes_.requests_new.push_back(std::move(request));
  if (wanted.place || MUTANT(begun_without_place)) begin_at_once(slot, wanted);
  for (const std::string& tag : wanted.tags)
    writes_.tags_new.push_back({wanted.key.tenant, tag, wanted.key.id});
  return CallReply{slot.call, true};
}

CallsReply Calls::decide(const SubmitCalls& c) {
  CallsReply reply;
  for (const NewCall& each : c.calls) reply.calls.push_back(submit(each, std::nullopt));
  return reply;
}

CallsReply Calls::decide(const RepeatCall& c) {
  const auto* origin = find(c.origin);
  const auto request = requests_.find(c.origin);
  if (!origin) return {{not_found()}};
  if (const auto may = call::repeat(origin->call, request != requests_.end()); !may)
    return {{not_possible(may.error(), origin->call)}};
  NewCall again{.key = {c.origin.tenant, c.new_id},
                .name = origin->call.name,
                .due_at = c.due_at,
                .request = request->second,
                .request_spec = origin->call.request_spec,
                .origin = origin->call.origin,
                .tags = call::read_tags(origin->call),
                .idempotency_key = c.idempotency_key,
                .request_hash = c.request_hash,
                .correlation_id = origin->call.correlation_id,
                .causation_id = c.causation_id};
  return {{submit(again, c.origin.id.value)}};
}

CallsReply Calls::decide(const ChangeCall& c) {
  Slot* slot = find(c.key);
  if (!slot) return {{not_found()}};
  const call::Decision<std::optional<call::Event>> event =
      c.what == ChangeCall::What::cancel ? call::cancel(slot->call, c.by, c.reason, now_)
                                         : call::reschedule(slot->call, c.due_at, c.by, c.reason);
  if (!event) return {{not_possible(event.error(), slot->call)}};
  if (*event) record(*slot, **event, c.causation_id);
  return {{CallReply{slot->call, event->has_value()}}};
}

StartedReply Calls::decide(const StartCalls& c) {
  StartedReply reply;
  for (const CallKey& key : c.keys) {
    Slot* slot = find(key);
    if (!slot) continue;
    const auto request = requests_.find(key);  // we never delete one; somebody else may
    const auto start = call::ask_to_start(slot->call, request != requests_.end(), c.started_by, now_);
    if (!start) {
      if (start.error() == call::Conflict::not_due) reply.not_due.push_back(waiting(slot->call, {}));
      if (slot->call.status == call::Status::running) reply.running.push_back(key);
      continue;
    }
    if (start->event && !MUTANT(call_start_not_stored)) record(*slot, *start->event, c.started_by);
    if (start->is_sent) reply.started.push_back({slot->call, request->second});
  }
  return reply;
}

CallsReply Calls::decide(const EndCalls& c) {
  CallsReply reply;
  for (const CallOutcome& each : c.outcomes) {
    Slot* slot = find(each.key);
    if (!slot) {
      reply.calls.emplace_back(not_found());
      continue;
    }
    const auto event = call::finish(slot->call, each.succeeded, each.meta, now_);
    if (event) record(*slot, *event, each.causation_id);
    if (event || is_terminal(slot->call.status))
      reply.calls.emplace_back(CallReply{slot->call, event.has_value()});
    else
      reply.calls.emplace_back(not_possible(event.error(), slot->call));
  }
  return reply;
}

CallsReply Calls::decide(const RebuildCalls& c) {
  CallsReply reply;
  for (const CallKey& key : c.keys) {
    const Slot* slot = find(key);
    if (!slot) {
      reply.calls.emplace_back(not_found());
      continue;
    }
    // Whoever waits for its time could not see it.
    if (slot->call.status == call::Status::scheduled) scheduled_.push_back(waiting(slot->call, {}));
    reply.calls.emplace_back(CallReply{slot->call, !slot->has_row});
  }
  return reply;
}

// --- writing

// A call that was touched and has no row is given one, whether it has changed or not.
call::Writes Calls::take_writes() {
  for (auto& [key, slot] : calls_) {
    if (slot.is_new) {
      writes_.calls_new.push_back(std::move(slot.call));
    } else if (!slot.has_row) {
      for (const std::string& tag : call::read_tags(slot.call))
        writes_.tags_new.push_back({key.tenant, tag, key.id});
      writes_.calls_rebuilt.push_back(std::move(slot.call));
    } else if (slot.changed) {
      writes_.calls_changed.push_back(std::move(slot.call));
    }
  }
  return std::move(writes_);
}

std::vector<DueCall> Calls::take_scheduled() {
  if (MUTANT(call_not_told)) scheduled_.clear();
  return std::exchange(scheduled_, {});
}

}  // namespace baton::engine
