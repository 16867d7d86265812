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
constexpr Duration retry_wrong_after{30'000};   // what the store does not want, somebody may repair
constexpr Duration look_at_clock_after{1'000};  // the clock on the wall may be set while nothing happens
constexpr std::size_t ends_asked_max = 2;  // more would only wait in the inbox; meanwhile the next one grows

bool may_pass(Refusal refusal) {
  return refusal == Refusal::overloaded || refusal == Refusal::store_unavailable ||
         refusal == Refusal::store_full;
}

CallKey key_of(const std::pair<call::Lane, call::Due>& each) { return {each.first.tenant, each.second.id}; }

// The second half of it.
template <class T>
std::vector<T> cut_in_half(std::vector<T>& all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::vector<T> rest(std::make_move_iterator(middle), std::make_move_iterator(all.end()));
  all.erase(middle, all.end());
  return rest;
}

}  // namespace

Dispatch::Dispatch(Outside& outside, metrics::Registry& metrics, DispatchOptions options)
    : outside_(outside), options_(std::move(options)), agenda_(options_.window), metrics_(metrics) {}

void Dispatch::Metrics::count(std::string_view kind) {
  auto& counter = by_kind[kind];
  if (!counter)
    counter = &registry.counter("baton_service_calls_ended_total", "Service calls that have ended, by how",
                                "kind=\"" + std::string(kind) + "\"");
  counter->add();
}

// --- a step

Duration Dispatch::step(Time now, Duration uptime) {
  now_ = now;
  ask_again(uptime);
  Duration wait = look_at_clock_after;
  if (begins_ && uptime >= read_not_before_) {
    const auto done = begin_what_is_due(now, uptime);
    if (!done) outside_.drop_reads();
    read_delay_ = done ? Duration{} : std::clamp(read_delay_ * 2, options_.retry_after, retry_after_max);
    read_not_before_ = uptime + read_delay_;
  }
  store_outcomes();
  metrics_.running.set(static_cast<std::int64_t>(open_.size()));
  if (!retries_.empty()) wait = std::min(wait, retries_.begin()->first - uptime);
  if (!begins_) return wait;
  if (read_not_before_ > uptime) return std::min(wait, read_not_before_ - uptime);
  if (const auto due = agenda_.next_due()) return std::clamp(*due - now, Duration{}, wait);
  return wait;
}

Result<> Dispatch::begin_what_is_due(Time now, Duration uptime) {
  TRY_ASSIGN(CallReads* const reads, outside_.reads());
  if (!has_begun_) TRY(take_left_over(*reads, uptime));
  send_probes(uptime);
  do TRY(look_ahead(*reads, now));
  while (start_due(now));  // windows may have become empty
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
  std::vector<std::optional<Probe>> probes;
  for (const CallKey& key : keys) {
    TRY_ASSIGN(auto probe, probe_for(reads, key, uptime));
    probes.push_back(std::move(probe));
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
  has_begun_ = true;
  return {};
}

Result<std::optional<Dispatch::Probe>> Dispatch::probe_for(CallReads& reads, const CallKey& key,
                                                           Duration uptime) {
  TRY_ASSIGN(const auto request, reads.call_request(key));
  auto probe = request && !MUTANT(probe_not_sent) ? probe_of(*request) : std::nullopt;
  const auto origin = probe ? origin_of(probe->url) : Result<std::string>{fail(Code::invalid, "")};
  if (!origin) return std::nullopt;
  return Probe{key, {key.tenant, *origin}, uptime + Duration{request->timeout_ms}, *std::move(probe)};
}

// What had left when the earlier server ended may arrive until its own timeout is over: who asks before that
// is told of a call that was not received, and yet will be. Clocks on walls are not trusted with this.
void Dispatch::send_probes(Duration uptime) {
  std::erase_if(probes_, [&](Probe& probe) {
    const bool is_early = probe.not_before > uptime && !MUTANT(probe_too_early);
    if (is_early || take_place(probe.lane) != Place::taken) return false;
    const Ticket ticket = ++next_ticket_;
    under_way_[ticket] = {probe.key, probe.lane, options_.name, true};
    outside_.send(ticket, probe.lane, std::move(probe.request));
    return true;
  });
}

// --- what is due

void Dispatch::scheduled(DueCall call) { agenda_.add(call.lane, std::move(call.due), call.was); }

Result<> Dispatch::look_ahead(CallReads& reads, Time now) {
  const Time soon = now + options_.look_ahead;
  if (soon > agenda_.known_until()) {
    const Time until = soon + 2 * options_.look_ahead;
    TRY_ASSIGN(const auto lanes, reads.lanes_due(agenda_.known_until(), until));
    agenda_.know(until, lanes);
  }
  while (const auto wanted = agenda_.refill(soon)) {
    TRY_ASSIGN(const auto found, reads.due_calls(*wanted));
    agenda_.refilled(*wanted, found);
  }
  return {};
}

// True: some were taken, and there may be more.
bool Dispatch::start_due(Time now) {
  Started start;
  start.calls =
      agenda_.take(now, options_.starts_max, [&](const call::Lane& lane) { return take_place(lane); });
  if (start.calls.empty()) return false;
  // One that is begun already was told of late.
  std::erase_if(start.calls, [&](const auto& each) {
    const bool is_new = open_.insert(key_of(each)).second;
    if (!is_new) free_place(each.first);
    return !is_new;
  });
  start.token = options_.name + "-" + std::to_string(++next_ticket_);
  if (!start.calls.empty()) ask({std::move(start), {}});
  return true;
}

void Dispatch::begin(Started& asked, StartedReply& reply) {
  std::map<CallKey, StartedReply::Started*> started;
  for (StartedReply::Started& each : reply.started) started.emplace(each.call.key(), &each);
  for (auto& [lane, due] : asked.calls) {
    CallKey key{lane.tenant, due.id};
    const auto it = started.find(key);
    if (it == started.end()) {  // it was cancelled, put off, or made already
      open_.erase(key);
      free_place(lane);
      continue;
    }
    const auto& [row, request] = *it->second;
    metrics_.lag.observe(now_ - row.due_at);
    const Ticket ticket = ++next_ticket_;
    under_way_[ticket] = {std::move(key), lane, asked.token, false};
    outside_.send(ticket, lane, outgoing(request));
  }
  // Another time was given to them, or the clock was set back.
  if (!MUTANT(refused_start_forgotten))
    for (DueCall& each : reply.not_due) scheduled(std::move(each));
}

// --- what has ended

void Dispatch::ended(Ticket ticket, const OutgoingResult& result) {
  const auto node = under_way_.extract(ticket);
  ENSURE(!node.empty());
  const UnderWay& was = node.mapped();
  // We are stopping and it may have been received: it is for the next server to settle.
  if (result.kind == OutgoingResult::Kind::stopped && (result.may_have_left || was.is_probe)) return;
  leave_origin(was.lane.origin);
  if (MUTANT(place_given_too_early))
    leave_place(was.lane.tenant);
  else
    in_place_.insert(was.key);
  end(was.key, was.causation_id, was.is_probe ? settled_by(result) : outcome_of(result));
}

void Dispatch::end(const CallKey& key, const std::string& causation_id, Outcome outcome) {
  metrics_.count(outcome.kind);
  outcomes_.push_back({key, outcome.succeeded, std::move(outcome.meta), causation_id});
}

void Dispatch::store_outcomes() {
  while (!outcomes_.empty() && ends_asked_ < ends_asked_max) {
    const std::size_t n = std::min(outcomes_.size(), options_.outcomes_max);
    const auto last = outcomes_.begin() + static_cast<std::ptrdiff_t>(n);
    Ended end{{std::make_move_iterator(outcomes_.begin()), std::make_move_iterator(last)}};
    outcomes_.erase(outcomes_.begin(), last);
    ask({std::move(end), {}});
  }
}

// --- asking the engine

void Dispatch::ask(Asked asked) {
  const Ticket ticket = ++next_ticket_;
  Command command = std::visit(overloaded{[](const Started& start) -> Command {
                                            StartCalls made{.started_by = start.token, .keys = {}};
                                            for (const auto& each : start.calls)
                                              made.keys.push_back(key_of(each));
                                            return made;
                                          },
                                          [&](const Ended& end) -> Command {
                                            ++ends_asked_;
                                            return EndCalls{end.outcomes};
                                          }},
                               asked.what);
  asked_.emplace(ticket, std::move(asked));
  outside_.ask(ticket, std::move(command));
}

void Dispatch::answered(Ticket ticket, Reply reply) {
  auto node = asked_.extract(ticket);
  ENSURE(!node.empty());
  Asked& asked = node.mapped();
  const auto* end = std::get_if<Ended>(&asked.what);
  if (end) --ends_asked_;
  if (const auto* why = std::get_if<Refused>(&reply)) return refused(std::move(asked), *why);
  if (auto* started = std::get_if<StartedReply>(&reply))
    return begin(std::get<Started>(asked.what), *started);
  for (const CallOutcome& each : end->outcomes) close(each.key);
}

// It may have happened all the same. Whatever was asked is asked again, with the same token, until it is
// answered: nobody else remembers it.
void Dispatch::refused(Asked asked, const Refused& why) {
  if (why.refusal == Refusal::stopping) {
    engine_is_gone_ = true;
  } else if (may_pass(why.refusal)) {
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
                                              std::get<Started>(rest.what).calls = cut_in_half(start.calls);
                                              return start.calls.empty();
                                            },
                                            [&](Ended& end) {
                                              std::get<Ended>(rest.what).outcomes = cut_in_half(end.outcomes);
                                              return end.outcomes.empty();
                                            }},
                                 asked.what);
  if (is_one) return std::visit([&](const auto& what) { give_up(what, why); }, rest.what);
  refused_.push_back(std::move(asked));
  refused_.push_back(std::move(rest));
}

// Its row cannot be worked with. Somebody may repair it; the next server looks again.
void Dispatch::give_up(const Started& start, const std::string& why) {
  const auto& one = start.calls.front();
  say("service call " + one.second.id.value + " cannot be started: " + why);
  open_.erase(key_of(one));
  free_place(one.first);
}

void Dispatch::give_up(const Ended& end, const std::string& why) {
  const CallOutcome& one = end.outcomes.front();
  say("the outcome of service call " + one.key.id.value + " cannot be stored: " + why);
  close(one.key);
}

void Dispatch::ask_again(Duration uptime) {
  for (Asked& each : std::exchange(refused_, {})) retries_.emplace(uptime + each.delay, std::move(each));
  while (!retries_.empty() && retries_.begin()->first <= uptime)
    ask(std::move(retries_.extract(retries_.begin()).mapped()));
}

// --- places

Place Dispatch::take_place(const call::Lane& lane) {
  std::size_t& of_tenant = taken_by_[lane.tenant];
  if (of_tenant >= options_.places_max - taken_ && !MUTANT(tenant_takes_all)) return Place::none_for_tenant;
  std::size_t& to_origin = under_way_to_[lane.origin];
  if (to_origin >= options_.per_origin_max) return Place::none_for_origin;
  ++of_tenant, ++to_origin, ++taken_;
  return Place::taken;
}

// It has answered, and may be asked for something else.
void Dispatch::leave_origin(const std::string& origin) {
  const auto it = under_way_to_.find(origin);
  ENSURE(it != under_way_to_.end());
  if (--it->second == 0) under_way_to_.erase(it);
  agenda_.place_is_free(origin);
}

void Dispatch::leave_place(const Tenant& tenant) {
  const auto it = taken_by_.find(tenant);
  ENSURE(it != taken_by_.end() && it->second > 0);
  if (--it->second == 0) taken_by_.erase(it);
  --taken_;
}

// What was not begun leaves both.
void Dispatch::free_place(const call::Lane& lane) {
  leave_origin(lane.origin);
  leave_place(lane.tenant);
}

// It is stored as ended. What an earlier server left and no probe was sent for has no place.
void Dispatch::close(const CallKey& key) {
  open_.erase(key);
  if (in_place_.erase(key) > 0) leave_place(key.tenant);
}

}  // namespace baton::caller
