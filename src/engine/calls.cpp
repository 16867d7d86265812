#include "engine/calls.hpp"

#include <set>

#include "base/mutant.hpp"
#include "base/result.hpp"

namespace baton::engine {

using call::CallKey;
using Problem = CallsReply::Problem;

namespace {

std::string why_not(call::Refused refused, const call::Call& call) {
  using enum call::Refused;
  const std::string is = "the call is " + std::string(name(call.status));
  switch (refused) {
    case not_found: return "there is no such call";
    case not_due: return "the call is not due before " + to_iso(call.due_at);
    case not_scheduled: return is + ", not Scheduled";
    case not_running: return is + ", not Running";
  }
  return is;
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
}
void Calls::want(const ChangeCall& c, call::LoadRequest& needs) { needs.calls.push_back(c.key); }
void Calls::want(const StartCalls& c, call::LoadRequest& needs) {
  needs.calls.insert(needs.calls.end(), c.keys.begin(), c.keys.end());
  needs.requests.insert(needs.requests.end(), c.keys.begin(), c.keys.end());
}
void Calls::want(const EndCalls& c, call::LoadRequest& needs) {
  for (const CallOutcome& each : c.outcomes) needs.calls.push_back(each.key);
}

void Calls::add(call::Loaded loaded) {
  for (call::Call& row : loaded.calls) calls_.try_emplace(row.key(), Slot{.call = row});
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
    if (!calls_.contains({key.first, row.service_call_id})) needs.calls.push_back({key.first, row.service_call_id});
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
                      .correlation_id = row.service_call_id.value,
                      .causation_id = causation_id,
                      .data = call::to_json(event)};
  call::apply(fact, event, row);
  slot.changed = !MUTANT(call_row_not_written);
  if (fact.event_type == call::EventType::scheduled) 
    scheduled_.push_back({{row.tenant_id, row.origin}, {row.due_at, row.service_call_id}});
  if (is_terminal(row.status)) ++ended_;
  writes_.events_new.push_back(std::move(fact));
}

std::variant<CallReply, Problem> Calls::submit(const NewCall& wanted, std::optional<std::string> repeat_of) {
  if (const auto* there = find(wanted.key)) return CallReply{there->call, false};
  if (wanted.idempotency_key && !MUTANT(call_key_ignored)) {
    const Key key{wanted.key.tenant, *wanted.idempotency_key};
    const auto [it, is_new] = keys_.try_emplace(
        key, call::IdempotencyKey{key.first, key.second, wanted.key.id, wanted.request_hash});
    if (!is_new) {
      if (it->second.request_hash != wanted.request_hash)
        return Problem{true, "this idempotency key was used before, for a different request"};
      const auto* first = find({key.first, it->second.service_call_id});
      if (!first) return Problem{false, "the call of this idempotency key is gone"};
      return CallReply{first->call, false};
    }
    writes_.keys_new.push_back(it->second);
  }
  Slot& slot = calls_[wanted.key];
  slot.is_new = true;
  slot.call.tenant_id = wanted.key.tenant;
  slot.call.service_call_id = wanted.key.id;
  record(slot,
         call::Submitted{wanted.name, wanted.request_spec, now_, wanted.tags, wanted.origin, std::move(repeat_of)},
         wanted.causation_id);
  record(slot, call::Scheduled{wanted.due_at.value_or(now_)}, wanted.causation_id);
  call::Request request = wanted.request;
  request.tenant_id = wanted.key.tenant;
  request.service_call_id = wanted.key.id;
  requests_.try_emplace(wanted.key, request);
  writes_.requests_new.push_back(std::move(request));
  for (const std::string& tag : wanted.tags) writes_.tags_new.push_back({wanted.key.tenant, tag, wanted.key.id});
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
  if (!origin || request == requests_.end()) return {{Problem{false, ""}}};
  NewCall again{.key = {c.origin.tenant, c.new_id},
                .name = origin->call.name,
                .due_at = c.due_at,
                .request = request->second,
                .request_spec = origin->call.request_spec,
                .origin = origin->call.origin,
                .tags = call::read_tags(origin->call),
                .causation_id = c.causation_id};
  return {{submit(again, c.origin.id.value)}};
}

CallsReply Calls::decide(const ChangeCall& c) {
  Slot* slot = find(c.key);
  if (!slot) return {{Problem{false, ""}}};
  const bool cancels = c.what == ChangeCall::What::cancel;
  const auto event = cancels ? call::cancel(slot->call, c.by, c.reason, now_) : call::reschedule(slot->call, c.due_at);
  if (!event) return {{Problem{true, why_not(event.error(), slot->call)}}};
  if (!cancels && slot->call.due_at == c.due_at) return {{CallReply{slot->call, false}}};
  record(*slot, *event, c.by);
  return {{CallReply{slot->call, true}}};
}

StartedReply Calls::decide(const StartCalls& c) {
  StartedReply reply;
  // A call that was rescheduled may be asked for twice, under its old time and its new one.
  for (const CallKey& key : std::set(c.keys.begin(), c.keys.end())) {
    Slot* slot = find(key);
    const auto request = requests_.find(key);
    if (!slot || request == requests_.end()) continue;
    const bool was_started = slot->call.status == call::Status::running && slot->call.started_by == c.started_by;
    if (!was_started) {
      const auto event = call::start(slot->call, now_);
      if (!event) continue;
      if (!MUTANT(call_start_not_stored)) record(*slot, *event, c.started_by);
    }
    reply.started.push_back({slot->call, request->second});
  }
  return reply;
}

CallsReply Calls::decide(const EndCalls& c) {
  CallsReply reply;
  for (const CallOutcome& each : c.outcomes) {
    Slot* slot = find(each.key);
    if (!slot) {
      reply.calls.emplace_back(Problem{false, "there is no such call"});
      continue;
    }
    const auto event = call::finish(slot->call, each.succeeded, each.meta, now_);
    if (event) record(*slot, *event, each.causation_id);
    if (event || is_terminal(slot->call.status))
      reply.calls.emplace_back(CallReply{slot->call, event.has_value()});
    else
      reply.calls.emplace_back(Problem{true, why_not(event.error(), slot->call)});
  }
  return reply;
}

// --- writing

call::Writes Calls::take_writes() {
  for (auto& [key, slot] : calls_) {
    if (slot.is_new)
      writes_.calls_new.push_back(std::move(slot.call));
    else if (slot.changed)
      writes_.calls_changed.push_back(std::move(slot.call));
  }
  return std::move(writes_);
}

std::vector<DueCall> Calls::take_scheduled() {
  if (MUTANT(call_not_told)) scheduled_.clear();
  return std::exchange(scheduled_, {});
}

}  // namespace baton::engine
