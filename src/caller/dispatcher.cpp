#include "caller/dispatcher.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/result.hpp"
#include "caller/outcome.hpp"
#include "core/call/agenda.hpp"

namespace baton::caller {
namespace {

using call::CallKey;
using Steady = std::chrono::steady_clock;
using Taken = std::vector<std::pair<call::Lane, call::Due>>;

bool worth_retrying(Refusal refusal) {
  return refusal == Refusal::overloaded || refusal == Refusal::store_unavailable || refusal == Refusal::store_full;
}

constexpr Duration retry_after_max{1'000};

// A command that was asked and has not been answered for good.
struct Asked {
  std::string token;
  Taken calls;                         // of a start
  std::vector<CallOutcome> outcomes;   // of an end
  Duration delay{};                    // before the next try
};

}  // namespace

struct Dispatcher::State : std::enable_shared_from_this<State> {
  State(Inbox& i, const Clock& c, Caller& k, OpenReads r, DispatcherOptions o)
      : inbox(i), clock(c), caller(k), open_reads(std::move(r)), options(std::move(o)) {}

  Inbox& inbox;
  const Clock& clock;
  Caller& caller;
  const OpenReads open_reads;
  const DispatcherOptions options;
  std::thread thread;

  // Shared with the engine's and the caller's threads.
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::vector<DueCall> told;
  std::vector<std::pair<Asked, Reply>> answers;
  std::vector<CallOutcome> ended;

  // Owned by the thread.
  call::Agenda agenda;
  std::unique_ptr<Reads> reads;
  std::vector<CallOutcome> outcomes;  // to be stored
  std::multimap<Steady::time_point, Asked> retries;
  std::size_t starts_out = 0, ends_out = 0, under_way = 0;
  std::uint64_t next_token = 0;
  bool engine_stopping = false;

  void run();
  bool prepare();
  bool load_lanes();
  bool settle_left_over();
  void settle_one(const CallKey& key, const call::Request& request);
  void take_messages();
  void answered(Asked asked, Reply reply);
  void begin(const Asked& asked, StartedReply reply);
  void fill_windows();
  bool start_due();
  void send_start(Asked asked);
  void send_ends();
  void send_end(Asked asked);
  void send_retries();
  void send(const call::Lane& lane, StartedReply::Started started);
  void ask(Asked asked, Command command);
  [[nodiscard]] std::optional<Steady::time_point> next_wake(bool blocked) const;
  [[nodiscard]] bool idle() const { return under_way == 0 && starts_out == 0 && ends_out == 0 && outcomes.empty(); }
  void say(const std::string& what) const {
    if (options.log) options.log(what);
  }
  class Answer;
};

class Dispatcher::State::Answer final : public Waiter {
 public:
  Answer(std::shared_ptr<State> state, Asked asked) : state_(std::move(state)), asked_(std::move(asked)) {}
  void deliver(Reply reply) override {
    const std::scoped_lock lock(state_->mutex);
    state_->answers.emplace_back(std::move(asked_), std::move(reply));
    state_->wake.notify_one();
  }

 private:
  std::shared_ptr<State> state_;
  Asked asked_;
};

// --- the loop

void Dispatcher::State::run() {
  Duration pause = options.retry_after;
  while (!prepare()) {
    std::unique_lock lock(mutex);
    if (wake.wait_for(lock, pause, [&] { return stopping; })) return;
    pause = std::min(pause * 2, retry_after_max);
  }
  std::optional<Steady::time_point> give_up_at;
  while (true) {
    take_messages();
    send_retries();
    bool blocked = false;
    const bool stops = [&] {
      const std::scoped_lock lock(mutex);
      return stopping;
    }();
    if (stops) {
      if (!give_up_at) give_up_at = Steady::now() + options.patience;
      if (engine_stopping || (idle() && retries.empty()) || Steady::now() >= *give_up_at) return;
    } else {
      fill_windows();
      blocked = start_due();
    }
    send_ends();
    const auto until = stops ? give_up_at : next_wake(blocked);
    std::unique_lock lock(mutex);
    const auto something = [&] { return (stopping && !stops) || !told.empty() || !answers.empty() || !ended.empty(); };
    if (until)
      wake.wait_until(lock, *until, something);
    else
      wake.wait(lock, something);
  }
}

bool Dispatcher::State::prepare() {
  if (!reads) {
    auto opened = open_reads();
    if (!opened) return false;
    reads = *std::move(opened);
  }
  return settle_left_over() && load_lanes();
}

bool Dispatcher::State::load_lanes() {
  call::Lane after;
  while (true) {
    const auto found = reads->next_lane(after);
    if (!found) return false;
    if (!*found) return true;
    agenda.add_lane((*found)->first, (*found)->second);
    after = (*found)->first;
  }
}

// When there is something to do without being told.
std::optional<Steady::time_point> Dispatcher::State::next_wake(bool blocked) const {
  std::optional<Steady::time_point> at;
  const auto sooner = [&](Steady::time_point time) { at = at ? std::min(*at, time) : time; };
  if (!retries.empty()) sooner(retries.begin()->first);
  if (const auto due = agenda.next_due()) {
    const Duration in = *due - clock.now();
    // No place was free: whoever ends his call tells. A look now and then in case that nobody does.
    if (in.count() > 0)
      sooner(Steady::now() + in);
    else
      sooner(Steady::now() + (blocked ? Duration{100} : Duration{1}));
  }
  return at;
}

void Dispatcher::State::take_messages() {
  std::vector<DueCall> scheduled;
  std::vector<std::pair<Asked, Reply>> replies;
  std::size_t over = 0;
  {
    const std::scoped_lock lock(mutex);
    scheduled.swap(told);
    replies.swap(answers);
    over = ended.size();
    std::ranges::move(ended, std::back_inserter(outcomes));
    ended.clear();
  }
  under_way -= over;
  for (DueCall& each : scheduled) agenda.add(each.lane, std::move(each.due));
  for (auto& [asked, reply] : replies) answered(std::move(asked), std::move(reply));
}

// --- what the engine says

void Dispatcher::State::ask(Asked asked, Command command) {
  inbox.submit(std::move(command), std::make_shared<Answer>(shared_from_this(), std::move(asked)));
}

void Dispatcher::State::answered(Asked asked, Reply reply) {
  const bool is_start = asked.outcomes.empty();
  --(is_start ? starts_out : ends_out);
  if (const auto* refused = std::get_if<Refused>(&reply)) {
    if (worth_retrying(refused->refusal)) {  // it may have happened: the same is asked again
      asked.delay = std::clamp(asked.delay * 2, options.retry_after, retry_after_max);
      const auto at = Steady::now() + asked.delay;
      retries.emplace(at, std::move(asked));
      return;
    }
    if (refused->refusal == Refusal::stopping) engine_stopping = true;
    for (const auto& [lane, due] : asked.calls) caller.give_place_back(lane.origin);
    if (!engine_stopping) say("service calls: " + refused->message);
    return;
  }
  if (auto* started = std::get_if<StartedReply>(&reply)) begin(asked, std::move(*started));
}

void Dispatcher::State::send_retries() {
  while (!retries.empty() && retries.begin()->first <= Steady::now()) {
    Asked asked = std::move(retries.extract(retries.begin()).mapped());
    if (asked.outcomes.empty())
      send_start(std::move(asked));
    else
      send_end(std::move(asked));
  }
}

// --- starting

void Dispatcher::State::fill_windows() {
  while (const auto wanted = agenda.refill(clock.now() + options.look_ahead)) {
    const auto found = reads->due_calls(wanted->lane, wanted->after, wanted->limit);
    if (!found) return;  // the next turn tries again
    agenda.refilled(*wanted, *found);
  }
}

// True: something is due and waits for a place.
bool Dispatcher::State::start_due() {
  bool no_place = false;
  while (true) {
    Asked asked;
    asked.calls = agenda.take(clock.now(), options.starts_max, [&](const std::string& origin) {
      const bool free = caller.take_place(origin);
      no_place = no_place || !free;
      return free;
    });
    if (asked.calls.empty()) return no_place;
    asked.token = options.name + "-" + std::to_string(++next_token);
    send_start(std::move(asked));
  }
}

void Dispatcher::State::send_start(Asked asked) {
  ++starts_out;
  StartCalls command{.started_by = asked.token, .keys = {}};
  for (const auto& [lane, due] : asked.calls) command.keys.push_back({lane.tenant, due.id});
  ask(std::move(asked), std::move(command));
}

void Dispatcher::State::begin(const Asked& asked, StartedReply reply) {
  std::map<CallKey, StartedReply::Started*> started;
  for (StartedReply::Started& each : reply.started) started.emplace(each.call.key(), &each);
  for (const auto& [lane, due] : asked.calls) {
    const auto it = started.find({lane.tenant, due.id});
    if (it == started.end()) {
      caller.give_place_back(lane.origin);  // it was cancelled, put off, or made already
      continue;
    }
    StartedReply::Started one = std::move(*it->second);
    started.erase(it);  // under an old time and a new one it is still one call
    send(lane, std::move(one));
  }
}

void Dispatcher::State::send(const call::Lane& lane, StartedReply::Started started) {
  ++under_way;
  CallOutcome outcome{.key = started.call.key(), .causation_id = started.call.started_by.value_or("")};
  caller.send(lane.origin, outgoing(started.request),
              [self = shared_from_this(), outcome = std::move(outcome)](const OutgoingResult& result) mutable {
                outcome.succeeded = succeeded(result);
                outcome.meta = meta_of(result);
                const std::scoped_lock lock(self->mutex);
                self->ended.push_back(std::move(outcome));
                self->wake.notify_one();
              });
}

// --- ending

void Dispatcher::State::send_ends() {
  constexpr std::size_t out_max = 2;  // more would only wait in the inbox; meanwhile the next one grows
  while (!outcomes.empty() && ends_out < out_max) {
    Asked asked;
    const std::size_t n = std::min(outcomes.size(), options.outcomes_max);
    const auto end = outcomes.begin() + static_cast<std::ptrdiff_t>(n);
    asked.outcomes.assign(std::make_move_iterator(outcomes.begin()), std::make_move_iterator(end));
    outcomes.erase(outcomes.begin(), end);
    send_end(std::move(asked));
  }
}

void Dispatcher::State::send_end(Asked asked) {
  ++ends_out;
  EndCalls command{asked.outcomes};
  ask(std::move(asked), std::move(command));
}

// --- what an earlier server left

bool Dispatcher::State::settle_left_over() {
  std::vector<CallKey> keys;
  constexpr std::size_t page = 1'000;
  while (true) {
    const auto found = reads->running_calls(keys.empty() ? CallKey{} : keys.back(), page);
    if (!found) return false;
    keys.insert(keys.end(), found->begin(), found->end());
    if (found->size() < page) break;
  }
  if (!keys.empty()) say(std::to_string(keys.size()) + " service calls were under way when the server stopped");
  for (const CallKey& key : keys) {
    const auto request = reads->call_request(key);
    if (!request) return false;
    settle_one(key, request->value_or(call::Request{}));
  }
  return true;
}

void Dispatcher::State::settle_one(const CallKey& key, const call::Request& request) {
  CallOutcome outcome{.key = key, .causation_id = options.name};
  const auto probe = probe_of(request);
  const auto origin = probe ? origin_of(probe->url) : Result<std::string>{fail(Code::invalid, "")};
  if (!probe || !origin || !caller.take_place(*origin)) {
    outcome.meta = in_doubt("the server stopped while the call was under way: it may or may not have been received");
    outcomes.push_back(std::move(outcome));
    return;
  }
  ++under_way;
  caller.send(*origin, *probe, [self = shared_from_this(), outcome = std::move(outcome)](const OutgoingResult& result) mutable {
    Settled settled = settle(result);
    outcome.succeeded = settled.succeeded;
    outcome.meta = std::move(settled.meta);
    const std::scoped_lock lock(self->mutex);
    self->ended.push_back(std::move(outcome));
    self->wake.notify_one();
  });
}

// --- from outside

Dispatcher::Dispatcher(Inbox& inbox, const Clock& clock, Caller& caller, OpenReads open_reads, DispatcherOptions options)
    : state_(std::make_shared<State>(inbox, clock, caller, std::move(open_reads), std::move(options))) {}

Dispatcher::~Dispatcher() { stop(); }

void Dispatcher::start() {
  state_->thread = std::thread([state = state_] { state->run(); });
}

void Dispatcher::stop() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
    state_->wake.notify_one();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

void Dispatcher::scheduled(std::vector<DueCall> calls) {
  const std::scoped_lock lock(state_->mutex);
  std::ranges::move(calls, std::back_inserter(state_->told));
  state_->wake.notify_one();
}

}  // namespace baton::caller
