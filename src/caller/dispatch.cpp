#include "caller/dispatch.hpp"

#include <algorithm>

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "caller/outcome.hpp"

namespace baton::caller {

using call::CallKey;
using Place = call::Agenda::Place;

namespace {

constexpr Duration retry_after_max{1'000};
constexpr Duration probe_margin{1'000};         // for what is on its way
constexpr Duration look_at_clock_after{1'000};  // the clock on the wall may be set while nothing happens
constexpr std::size_t ends_asked_max = 2;  // more would only wait in the inbox; meanwhile the next one grows

bool may_pass(Refusal refusal) {
  return refusal == Refusal::overloaded || refusal == Refusal::store_unavailable ||
         refusal == Refusal::store_full;
}

CallKey key_of(const std::pair<call::Destination, call::Due>& each) {
  return {each.first.tenant, each.second.id};
}

// What is behind the first n.
template <class T>
std::vector<T> cut_off(std::vector<T>& all, std::size_t n) {
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(n);
  std::vector<T> rest(std::make_move_iterator(from), std::make_move_iterator(all.end()));
  all.erase(from, all.end());
  return rest;
}

}  // namespace

Dispatch::Dispatch(DispatchActions& actions, metrics::Registry& metrics, std::shared_ptr<Places> places,
                   DispatchOptions options)
    : actions_(actions),
      places_(std::move(places)),
      options_(std::move(options)),
      agenda_(options_.window),
      metrics_(metrics) {}

void Dispatch::Metrics::count(std::string_view kind) {
  auto& counter = by_kind[kind];
  if (!counter)
    counter = &registry.counter("baton_service_calls_ended_total", "Service calls that have ended, by how",
                                "kind=\"" + std::string(kind) + "\"");
  counter->add();
}

// --- a step

Duration Dispatch::step(Time now, Duration uptime) {
  ask_again(uptime);
  for (const std::string& origin : places_->take_given_back()) agenda_.place_is_free(origin);
  Duration wait = look_at_clock_after;
  if (begins_ && uptime >= read_not_before_) {
    const auto done = begin_what_is_due(now, uptime);
    if (!done) actions_.drop_reads();
    if (!done && done.error().message != read_trouble_) say("service calls: " + done.error().message);
    read_trouble_ = done ? "" : done.error().message;
    read_delay_ = done ? Duration{} : std::clamp(read_delay_ * 2, options_.retry_after, retry_after_max);
    read_not_before_ = uptime + read_delay_;
  }
  store_outcomes();
  // Whoever comes now must not overtake those who wait.
  places_->grant(begins_ && has_begun_ && read_not_before_ <= uptime && !agenda_.has_backlog());
  metrics_.running.set(static_cast<std::int64_t>(open_.size()));
  if (!retries_.empty()) wait = std::min(wait, retries_.begin()->first - uptime);
  if (!begins_) return wait;
  if (read_not_before_ > uptime) return std::min(wait, read_not_before_ - uptime);
  wait = std::min(wait, std::max(look_not_before_ - uptime, Duration{}));
  if (const auto due = agenda_.next_due()) return std::clamp(*due - now, Duration{}, wait);
  return wait;
}

Result<> Dispatch::begin_what_is_due(Time now, Duration uptime) {
  TRY_ASSIGN(CallReads* const reads, actions_.reads());
  const std::int64_t shown = actions_.shown();  // before anything is read
  std::erase_if(not_shown_, [&](const auto& each) { return each.second.commit_number <= shown; });
  if (!has_begun_) TRY(take_left_over(*reads, uptime));
  TRY(look_for_lost_rows(*reads, uptime));
  send_probes(uptime);
  TRY(look_ahead(*reads, now));
  // Windows become empty, and are filled a few at a time, so that many destinations hold nobody up: what has
  // ended meanwhile is looked at in between.
  constexpr int turns_max = 4;
  for (int turn = 0; turn < turns_max; ++turn) {
    const bool has_begun_some = start_due(now);
    TRY_ASSIGN(const bool has_filled_some, fill_some(*reads, now));
    if (!has_begun_some && !has_filled_some) break;
  }
  return {};
}

// --- what an earlier server left

// All is read before anything is done, so that a read that fails can be repeated.
Result<> Dispatch::take_left_over(CallReads& reads, Duration uptime) {
  constexpr std::size_t page = 1'000;
  std::vector<CallKey> keys;
  while (true) {
    TRY_ASSIGN(const auto found, reads.running_calls(keys.empty() ? CallKey{} : keys.back(), page));
    keys.insert(keys.end(), found.begin(), found.end());
    if (found.size() < page) break;
  }
  // What a row says is for the events to confirm.
  std::vector<CallKey> running;
  for (const CallKey& key : keys) {
    const auto call = reads.service_call(key);
    if (!call && call.error().code != Code::invalid) return std::unexpected(call.error());
    if (!call) say("service call " + key.id.value + " of " + key.tenant.value + ": " + call.error().message);
    if (call && *call && (*call)->status == call::Status::running) running.push_back(key);
  }
  TRY(settle(reads, running, uptime));
  has_begun_ = true;
  return {};
}

Result<> Dispatch::settle(CallReads& reads, const std::vector<CallKey>& keys, Duration uptime) {
  std::vector<std::optional<Probe>> probes;
  for (const CallKey& key : keys) {
    auto probe = probe_for(reads, key, uptime);
    if (!probe && probe.error().code != Code::invalid) return std::unexpected(probe.error());
    if (!probe)
      say("the request of service call " + key.id.value + " cannot be read: " + probe.error().message);
    probes.push_back(probe ? *std::move(probe) : std::nullopt);
  }
  if (!keys.empty())
    say(std::to_string(keys.size()) + " service calls were under way when the server stopped");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    open_.insert(keys[i]);
    if (probes[i])
      probes_.push_back(*std::move(probes[i]));
    else
      end(keys[i], options_.name,
          in_doubt("the server stopped while the call was under way: it may or may not have been received"));
  }
  return {};
}

Result<std::optional<Dispatch::Probe>> Dispatch::probe_for(CallReads& reads, const CallKey& key,
                                                           Duration uptime) {
  TRY_ASSIGN(const auto request, reads.call_request(key));
  auto probe = request && !MUTANT(probe_not_sent) ? probe_of(*request) : std::nullopt;
  const auto origin = probe ? origin_of(probe->url) : Result<std::string>{fail(Code::invalid, "")};
  if (!origin) return std::nullopt;
  return Probe{
      key, {key.tenant, *origin}, uptime + Duration{request->timeout_ms} + probe_margin, *std::move(probe)};
}

// What had left when the earlier server ended may arrive until its own timeout is over: who asks before that
// is told of a call that was not received, and yet will be. Clocks on walls are not trusted with this.
void Dispatch::send_probes(Duration uptime) {
  std::vector<Probe> waiting;
  for (Probe& probe : std::exchange(probes_, {})) {
    const bool is_early = probe.not_before > uptime && !MUTANT(probe_too_early);
    if (is_early || places_->take(probe.destination) != Place::taken) {
      waiting.push_back(std::move(probe));
      continue;
    }
    const Ticket ticket = ++next_ticket_;
    under_way_[ticket] = {probe.key, probe.destination, options_.name, true};
    actions_.send(ticket, probe.destination, std::move(probe.request));
  }
  probes_ = std::move(waiting);
}

// --- rows that are lost

Result<> Dispatch::look_for_lost_rows(CallReads& reads, Duration uptime) {
  TRY(settle(reads, found_running_, uptime));
  found_running_.clear();
  if (uptime < look_not_before_) return {};
  TRY_ASSIGN(auto found, reads.streams_without_row(looked_until_, options_.events_looked_at));
  look_not_before_ = uptime + (found.last ? options_.look_after : options_.look_again);
  looked_until_ = found.last.value_or(call::EventKey{});
  if (!found.without_row.empty() && !MUTANT(lost_row_not_rebuilt))
    ask({Rebuild{std::move(found.without_row)}, {}});
  return {};
}

// What waits for its time we are told of like of any that is given one.
void Dispatch::rebuilt(const Rebuild& asked, const CallsReply& reply) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < asked.keys.size() && i < reply.calls.size(); ++i) {
    if (!reply.calls[i]) continue;
    count += reply.calls[i]->changed ? 1 : 0;  // not, if it was asked again because an answer was lost
    const bool is_running = reply.calls[i]->call.status == call::Status::running;
    if (is_running && !open_.contains(asked.keys[i])) found_running_.push_back(asked.keys[i]);
  }
  if (count > 0)
    say("the rows of " + std::to_string(count) + " service calls were written anew from their events");
}

// --- what is due

void Dispatch::scheduled(DueCall call, Time now) {
  if (call.begun) return begin_submitted(call.destination, *call.begun, now);
  agenda_.add(call.destination, call.due, call.was);
  if (call.commit_number == 0) return;  // an answer to its start, which a commit has told before
  const CallKey key{call.destination.tenant, call.due.id};
  not_shown_.insert_or_assign(key, std::move(call));
}

// From here on its place is ours to leave.
void Dispatch::begin_submitted(const call::Destination& to, const DueCall::Begun& begun, Time now) {
  if (begun.place) begun.place->keep();
  open_.insert(begun.started.call.key());
  send(to, begun.started, begun.started.call.started_by.value_or(""), now);
}

Result<> Dispatch::look_ahead(CallReads& reads, Time now) {
  const Time soon = now + options_.look_ahead;
  if (soon > agenda_.known_until()) {
    const Time until = soon + 2 * options_.look_ahead;
    TRY_ASSIGN(const auto destinations, reads.destinations_due(agenda_.known_until(), until));
    agenda_.know(until, destinations);
    add_what_tables_lack();
  }
  return {};
}

Result<bool> Dispatch::fill_some(CallReads& reads, Time now) {
  constexpr int destinations_max = 64;
  int filled = 0;
  for (; filled < destinations_max; ++filled) {
    const auto wanted = agenda_.refill(now + options_.look_ahead);
    if (!wanted) break;
    auto found = reads.due_calls(*wanted);
    if (!found && found.error().code != Code::invalid) {
      if (filled > 0) add_what_tables_lack();
      return std::unexpected(found.error());
    }
    if (!found)
      say("service calls to " + wanted->destination.origin + " cannot be read: " + found.error().message);
    agenda_.refilled(*wanted, found.value_or(std::vector<call::Due>{}));
  }
  if (filled > 0) add_what_tables_lack();
  return filled > 0;
}

// Those that are being made need no turn. One that is over, and is told of here, is refused when it is to be started.
void Dispatch::add_what_tables_lack() {
  if (MUTANT(told_call_forgotten)) return;
  for (const auto& [key, call] : not_shown_)
    if (!open_.contains(key)) agenda_.add(call.destination, call.due, call.was);
}

// True: some were taken, and there may be more.
bool Dispatch::start_due(Time now) {
  Started start;
  start.calls =
      agenda_.take(now, options_.starts_max, [&](const call::Destination& to) { return places_->take(to); });
  if (start.calls.empty()) return false;
  // One that is begun already was told of late.
  std::erase_if(start.calls, [&](const auto& each) {
    const bool is_new = open_.insert(key_of(each)).second;
    if (!is_new) leave_origin(each.first), places_->leave_place(each.first.tenant);
    return !is_new;
  });
  start.token = options_.name + "-" + std::to_string(++next_ticket_);
  if (!start.calls.empty()) ask({std::move(start), {}});
  return true;
}

void Dispatch::begin(Started& asked, StartedReply& reply, Time now) {
  std::map<CallKey, StartedReply::Started*> started;
  for (StartedReply::Started& each : reply.started) started.emplace(each.call.key(), &each);
  for (const auto& [to, due] : asked.calls) {
    const auto it = started.find({to.tenant, due.id});
    if (it == started.end()) {  // it was cancelled, put off, or made already
      leave({to, due});
      continue;
    }
    send(to, *it->second, asked.token, now);
  }
  // A damaged row said that they wait; an earlier server began them.
  for (const CallKey& key : reply.running)
    if (!open_.contains(key)) found_running_.push_back(key);
  // Another time was given to them, or the clock was set back.
  if (!MUTANT(refused_start_forgotten))
    for (DueCall& each : reply.not_due) scheduled(std::move(each), now);
}

void Dispatch::send(const call::Destination& to, const StartedCall& started, const std::string& token,
                    Time now) {
  metrics_.lag.observe(now - started.call.due_at);
  const Ticket ticket = ++next_ticket_;
  under_way_[ticket] = {started.call.key(), to, token, false};
  actions_.send(ticket, to, outgoing(started.request));
}

// --- what has ended

void Dispatch::ended(Ticket ticket, const OutgoingResult& result) {
  const auto node = under_way_.extract(ticket);
  ENSURE(!node.empty());
  const UnderWay& was = node.mapped();
  // We are stopping and it may have been received: it is for the next server to settle.
  if (result.kind == OutgoingKind::stopped && (result.may_have_left || was.is_probe)) return;
  leave_origin(was.destination);
  if (MUTANT(place_given_too_early))
    places_->leave_place(was.destination.tenant);
  else
    in_place_.insert(was.key);
  end(was.key, was.causation_id, was.is_probe ? settled_by(result) : outcome_of(result));
}

void Dispatch::end(const CallKey& key, const std::string& causation_id, Outcome outcome) {
  outcomes_.outcomes.push_back({key, outcome.succeeded, std::move(outcome.meta), causation_id});
  outcomes_.kinds.push_back(outcome.kind);
}

void Dispatch::store_outcomes() {
  while (!outcomes_.outcomes.empty() && ends_asked_ < ends_asked_max) {
    const std::size_t n = std::min(outcomes_.outcomes.size(), options_.outcomes_max);
    Ended first = std::move(outcomes_);
    outcomes_ = {cut_off(first.outcomes, n), cut_off(first.kinds, n)};
    ask({std::move(first), {}});
  }
}

// --- asking the engine

void Dispatch::ask(Asked asked) {
  const Ticket ticket = ++next_ticket_;
  Command command =
      std::visit(overloaded{[](const Started& start) -> Command {
                              StartCalls made{.started_by = start.token, .keys = {}};
                              for (const auto& each : start.calls) made.keys.push_back(key_of(each));
                              return made;
                            },
                            [&](const Ended& end) -> Command {
                              ++ends_asked_;
                              return EndCalls{end.outcomes};
                            },
                            [](const Rebuild& rebuild) -> Command { return RebuildCalls{rebuild.keys}; }},
                 asked.what);
  asked_.emplace(ticket, std::move(asked));
  actions_.ask(ticket, std::move(command));
}

void Dispatch::answered(Ticket ticket, Reply reply, Time now) {
  auto node = asked_.extract(ticket);
  ENSURE(!node.empty());
  Asked& asked = node.mapped();
  const auto* end = std::get_if<Ended>(&asked.what);
  if (end) --ends_asked_;
  if (const auto* why = std::get_if<Refused>(&reply)) return refused(std::move(asked), *why);
  engine_trouble_.clear();
  if (auto* started = std::get_if<StartedReply>(&reply))
    return begin(std::get<Started>(asked.what), *started, now);
  if (const auto* rebuild = std::get_if<Rebuild>(&asked.what))
    return rebuilt(*rebuild, std::get<CallsReply>(reply));
  const auto& ends = std::get<CallsReply>(reply).calls;
  for (std::size_t i = 0; i < end->outcomes.size(); ++i) {
    const CallKey& key = end->outcomes[i].key;
    if (i < ends.size() && !ends[i]) say("service call " + key.id.value + ": " + ends[i].error().message);
    metrics_.count(end->kinds[i]);
    close(key);
  }
}

// It may have happened all the same. Whatever was asked is asked again, with the same token, until it is
// answered: nobody else remembers it.
void Dispatch::refused(Asked asked, const Refused& why) {
  const auto* start = std::get_if<Started>(&asked.what);
  if (why.refusal == Refusal::stopping) {
    engine_is_gone_ = true;
  } else if (start && why.refusal == Refusal::overloaded && !begins_) {
    for (const auto& each : start->calls) leave(each);  // the engine did not even look at it
  } else if (std::holds_alternative<Rebuild>(asked.what) && !begins_) {
    return;  // the next server looks again
  } else if (may_pass(why.refusal)) {
    if (why.message != engine_trouble_) say("service calls cannot be stored at the moment: " + why.message);
    engine_trouble_ = why.message;
    asked.delay = std::clamp(asked.delay * 2, options_.retry_after, retry_after_max);
    refused_.push_back(std::move(asked));
  } else {
    divide(std::move(asked), why.message);
  }
}

// The store does not want something that one of them brings: the others must not suffer for it.
void Dispatch::divide(Asked asked, const std::string& why) {
  asked.delay = {};
  Asked rest = asked;
  const bool is_one = std::visit(overloaded{[&](Started& start) {
                                              auto& other = std::get<Started>(rest.what);
                                              other.calls = cut_off(start.calls, start.calls.size() / 2);
                                              return start.calls.empty();
                                            },
                                            [&](Ended& end) {
                                              auto& other = std::get<Ended>(rest.what);
                                              const std::size_t half = end.outcomes.size() / 2;
                                              other = {cut_off(end.outcomes, half), cut_off(end.kinds, half)};
                                              return end.outcomes.empty();
                                            },
                                            [&](Rebuild& rebuild) {
                                              auto& other = std::get<Rebuild>(rest.what);
                                              other.keys = cut_off(rebuild.keys, rebuild.keys.size() / 2);
                                              return rebuild.keys.empty();
                                            }},
                                 asked.what);
  if (is_one) return std::visit([&](const auto& what) { give_up(what, why); }, rest.what);
  refused_.push_back(std::move(asked));
  refused_.push_back(std::move(rest));
}

// Its row cannot be worked with. It waits; when it is given another time, or by the next server, it is tried
// again.
void Dispatch::give_up(const Started& start, const std::string& why) {
  const auto& one = start.calls.front();
  say("service call " + one.second.id.value + " of " + one.first.tenant.value + " cannot be started: " + why);
  leave(one);
}

// How it ended is not forgotten: somebody may repair what is wrong.
void Dispatch::give_up(const Ended& end, const std::string& why) {
  constexpr Duration again_after{30'000};
  const CallKey& key = end.outcomes.front().key;
  say("the outcome of service call " + key.id.value + " of " + key.tenant.value +
      " cannot be stored: " + why);
  refused_.push_back({end, again_after});
}

void Dispatch::give_up(const Rebuild& rebuild, const std::string& why) {
  const CallKey& key = rebuild.keys.front();
  say("the row of service call " + key.id.value + " of " + key.tenant.value +
      " cannot be written anew: " + why);
}

void Dispatch::ask_again(Duration uptime) {
  for (Asked& each : std::exchange(refused_, {})) retries_.emplace(uptime + each.delay, std::move(each));
  while (!retries_.empty() && retries_.begin()->first <= uptime)
    ask(std::move(retries_.extract(retries_.begin()).mapped()));
}

// --- places

// It has answered, and may be asked for something else.
void Dispatch::leave_origin(const call::Destination& to) {
  places_->leave_origin(to);
  agenda_.place_is_free(to.origin);
}

// It was not begun.
void Dispatch::leave(const std::pair<call::Destination, call::Due>& call) {
  open_.erase(key_of(call));
  leave_origin(call.first);
  places_->leave_place(call.first.tenant);
}

// It is stored as ended. What an earlier server left and no probe was sent for has no place.
void Dispatch::close(const CallKey& key) {
  open_.erase(key);
  not_shown_.erase(key);
  if (in_place_.erase(key) > 0) places_->leave_place(key.tenant);
}

}  // namespace baton::caller
