#include "tests/simulation/call_world.hpp"

#include "core/call/call.hpp"

namespace baton::simulation {

using call::CallKey;
using namespace std::chrono_literals;

namespace {

constexpr int places_max = 3;
const Time begin_of_time = *from_iso("2027-01-15T09:00:00Z");

class Listener final : public Waiter {
 public:
  explicit Listener(std::function<void(Reply)> then) : then_(std::move(then)) {}
  void deliver(Reply reply) override { then_(std::move(reply)); }

 private:
  std::function<void(Reply)> then_;
};

}  // namespace

CallWorld::CallWorld(std::uint64_t seed) : random_(seed ^ 0xca11), time_(begin_of_time) {
  clock_.at = time_;
  start();
}
CallWorld::~CallWorld() = default;

void CallWorld::expect(bool holds, const std::string& what, const CallKey& key) {
  if (!holds) throw Violation{what + " (service call " + key.id.value + " of " + key.tenant.value + ")"};
}

// --- time

void CallWorld::after(Duration delay, std::function<void()> act) {
  future_.emplace(std::pair{time_ + delay, next_event_++}, std::move(act));
}
void CallWorld::if_alive(Duration delay, std::function<void()> act) {
  after(delay, [this, life = life_, act = std::move(act)] {
    if (life == life_ && writer_) act();
  });
}

void CallWorld::run() {
  for (int i = 0; i < 40; ++i) after(Duration{random_.between(0, 600'000)}, [this] { client(); });
  for (std::int64_t i = random_.between(0, 6); i > 0; --i) after(Duration{random_.between(0, 700'000)}, [this] { die(); });
  constexpr int steps_max = 20'000;
  for (int step = 0; step < steps_max; ++step) {
    if (future_.empty()) {
      if (calm_ && all_over()) break;
      calm_ = true;
      after(1min, [] {});
    }
    const auto next = future_.begin();
    const Duration passed = next->first.first - time_;
    time_ = next->first.first;
    clock_.at += passed;
    if (!calm_ && random_.chance(0.01)) clock_.at += Duration{random_.between(-20'000, 60'000)};  // somebody sets it
    const auto act = std::move(next->second);
    future_.erase(next);
    act();
    pump();
    expect(step + 1 < steps_max, "every call ends", {});
  }
  check_all();
}

// --- the server

void CallWorld::start() {
  store_ = std::make_unique<support::MemoryStore>(database_, [this] {
    using enum support::CommitFault;
    if (calm_) return none;
    return random_.chance(0.02) ? fail_before : random_.chance(0.02) ? unknown_applied : random_.chance(0.02) ? unknown_lost : none;
  });
  engine::WriterOptions options;
  options.calls_scheduled = [this](std::vector<DueCall> calls) { std::ranges::move(calls, std::back_inserter(told_)); };
  writer_ = std::make_unique<engine::Writer>(*store_, clock_, options);
  (void)writer_->open();
  agenda_ = std::make_unique<call::Agenda>(2);
  places_.clear();
  told_.clear();
  std::map<call::Lane, Time> lanes;
  std::vector<CallKey> running;
  for (const auto& [key, row] : database_.calls) {
    if (row.status == call::Status::running) running.push_back(key);
    if (row.status != call::Status::scheduled) continue;
    const auto lane = lanes.try_emplace({row.tenant_id, row.origin}, row.due_at).first;
    lane->second = std::min(lane->second, row.due_at);
  }
  for (const auto& [lane, first] : lanes) agenda_->add_lane(lane, first);
  for (const CallKey& key : running) end(key, false, call::outcome_unknown);
}

void CallWorld::die() {
  if (!writer_) return;
  ++life_;
  ++restarts_;
  writer_.reset();
  store_.reset();
  agenda_.reset();
  for (const auto& [key, row] : database_.calls)
    if (row.status == call::Status::running) in_doubt_.insert(key);
  after(Duration{random_.between(10, 60'000)}, [this] {
    if (!writer_) start();
  });
}

void CallWorld::ask(Command command, Then then) {
  if (!writer_) return;
  std::vector<engine::Item> items;
  items.push_back({std::move(command), std::make_shared<Listener>(std::move(then))});
  const auto life = life_;
  writer_->run(std::move(items));
  if (life != life_) return;
  // The outcome of a commit was lost: the server dies of it, or comes back and looks.
  if (writer_->away() && !calm_ && random_.chance(0.3)) return die();
  while (writer_->away()) (void)writer_->open();
}

// --- clients

void CallWorld::client() {
  const auto what = random_.below(10);
  if (what < 6 || submitted_.empty()) return submit();
  if (what < 8) return change();
  meddle();
}

void CallWorld::submit() {
  NewCall wanted;
  wanted.key = {Tenant{"tenant-" + std::to_string(random_.below(3))}, call::CallId{"call-" + std::to_string(10'000 + ++next_id_)}};
  wanted.name = "n";
  wanted.origin = "http://host-" + std::to_string(random_.below(3)) + ":80";
  wanted.request_spec = Json{"{}"};
  wanted.request.method = "GET";
  wanted.due_at = clock_.at + Duration{random_.between(-5'000, 300'000)};
  if (random_.chance(0.3)) wanted.idempotency_key = "key-" + std::to_string(next_id_);
  wanted.request_hash = "hash";
  submitted_.push_back(wanted);
  ask(SubmitCalls{{wanted}}, [this, wanted](const Reply& reply) {
    if (const auto* made = std::get_if<CallsReply>(&reply); made && wanted.idempotency_key)
      acknowledged_.try_emplace({wanted.key.tenant, *wanted.idempotency_key},
                                std::get<CallReply>(made->calls.at(0)).call.service_call_id);
  });
}

void CallWorld::change() {
  const NewCall& chosen = submitted_[random_.below(submitted_.size())];
  ChangeCall command{.key = chosen.key, .by = "ada"};
  command.what = random_.chance(0.5) ? ChangeCall::What::cancel : ChangeCall::What::reschedule;
  command.due_at = clock_.at + Duration{random_.between(-5'000, 200'000)};
  ask(std::move(command));
}

void CallWorld::meddle() {
  const NewCall& chosen = submitted_[random_.below(submitted_.size())];
  if (random_.chance(0.4)) {  // a client that heard no answer asks again, and his call has another id now
    NewCall again = chosen;
    again.key.id = call::CallId{"call-" + std::to_string(10'000 + ++next_id_)};
    if (!again.idempotency_key) return;
    ask(SubmitCalls{{again}}, [this, again](const Reply& reply) {
      const auto* made = std::get_if<CallsReply>(&reply);
      if (!made) return;
      const auto& is = std::get<CallReply>(made->calls.at(0)).call.service_call_id;
      const auto [it, first] = acknowledged_.try_emplace({again.key.tenant, *again.idempotency_key}, is);
      expect(it->second == is, "one key is one call", again.key);
    });
    return;
  }
  if (random_.chance(0.5)) return end(chosen.key, random_.chance(0.5), "Timeout");  // a late word, perhaps the second one
  // A start that must be refused, or is in time by chance.
  const auto it = database_.calls.find(chosen.key);
  if (it == database_.calls.end() || (it->second.status == call::Status::scheduled && it->second.due_at <= clock_.at)) return;
  begin("meddler-" + std::to_string(++next_token_), {{{chosen.key.tenant, chosen.origin}, {chosen.due_at.value(), chosen.key.id}}});
}

// --- who makes the calls

void CallWorld::pump() {
  if (!writer_) return;
  for (DueCall& each : std::exchange(told_, {})) agenda_->add(each.lane, std::move(each.due));
  while (const auto wanted = agenda_->refill(clock_.at + 1s)) {
    std::set<call::Due> found;
    for (const auto& [key, row] : database_.calls)
      if (row.status == call::Status::scheduled && call::Lane{row.tenant_id, row.origin} == wanted->lane)
        if (const call::Due due{row.due_at, row.service_call_id}; due > wanted->after) found.insert(due);
    std::vector<call::Due> page(found.begin(), found.end());
    if (page.size() > wanted->limit) page.resize(wanted->limit);
    agenda_->refilled(*wanted, page);
  }
  const auto taken = agenda_->take(clock_.at, 3, [&](const std::string& origin) {
    if (places_[origin] >= places_max) return false;
    ++places_[origin];
    return true;
  });
  if (!taken.empty()) begin("start-" + std::to_string(++next_token_), taken);
  // The near future: somebody looks then.
  if (const auto due = agenda_ ? agenda_->next_due() : std::nullopt; due && future_.empty())
    after(std::max(Duration{1}, *due - clock_.at), [] {});
}

void CallWorld::begin(const std::string& token, const std::vector<std::pair<call::Lane, call::Due>>& calls) {
  const bool meddles = token.starts_with("meddler");
  StartCalls command{.started_by = token, .keys = {}};
  for (const auto& [lane, due] : calls) command.keys.push_back({lane.tenant, due.id});
  ask(std::move(command), [this, token, calls, meddles, life = life_](const Reply& reply) {
    if (life != life_) return;
    if (std::holds_alternative<Refused>(reply)) {  // it may have happened: the same is asked again
      if (!meddles) if_alive(Duration{100}, [this, token, calls] { begin(token, calls); });
      return;
    }
    std::map<CallKey, call::Call> started;
    for (const auto& each : std::get<StartedReply>(reply).started) started.emplace(each.call.key(), each.call);
    for (const auto& [lane, due] : calls) {
      const auto it = started.find({lane.tenant, due.id});
      if (it == started.end() && !meddles) --places_[lane.origin];
      if (it == started.end()) continue;
      // The server may die between the start and the first byte.
      if_alive(Duration{random_.between(0, 3)}, [this, row = it->second] { send(row); });
      started.erase(it);
    }
  });
}

void CallWorld::send(const call::Call& row) {
  const CallKey key = row.key();
  expect(row.due_at <= row.started_at.value_or(Time{}), "a call is not made before its time", key);
  expect(++seen_[key] == 1, "a call is sent once", key);
  if_alive(Duration{random_.between(1, 5'000)}, [this, key, origin = row.origin] {
    --places_[origin];
    end(key, random_.chance(0.8), "HttpError");
  });
}

void CallWorld::end(const CallKey& key, bool succeeded, std::string_view kind, int tries) {
  CallOutcome outcome{.key = key, .succeeded = succeeded, .causation_id = "end"};
  outcome.meta = succeeded ? Json{"{}"} : call::error_meta(kind, "");
  const bool meddles = kind == "Timeout";
  // Whoever meddles ends only what has ended: what runs is not his.
  const auto row = database_.calls.find(key);
  if (meddles && (row == database_.calls.end() || row->second.status == call::Status::running)) return;
  ask(EndCalls{{outcome}}, [this, key, succeeded, kind = std::string(kind), tries, life = life_](const Reply& reply) {
    if (life == life_ && std::holds_alternative<Refused>(reply) && tries < 100)
      if_alive(Duration{100}, [this, key, succeeded, kind, tries] { end(key, succeeded, kind, tries + 1); });
  });
}

// --- what holds

bool CallWorld::all_over() const {
  if (!writer_) return false;
  return std::ranges::all_of(database_.calls, [](const auto& entry) { return is_terminal(entry.second.status); });
}

void CallWorld::check_all() const {
  std::map<CallKey, std::vector<call::EventRow>> streams;
  for (const auto& [key, event] : database_.call_events) streams[key.first].push_back(event);
  for (const auto& [key, row] : database_.calls) {
    const auto folded = call::fold(streams[key]);
    expect(folded && *folded == row, "a call is the fold of its events", key);
    const auto ends = std::ranges::count_if(streams[key], [](const call::EventRow& event) {
      return event.event_type == call::EventType::succeeded || event.event_type == call::EventType::failed;
    });
    expect(ends == 1, "a call ends once", key);
    const auto it = seen_.find(key);
    const int seen = it == seen_.end() ? 0 : it->second;
    if (row.status == call::Status::succeeded) {
      expect(seen == 1, "what succeeded was sent", key);
      continue;
    }
    const std::string& error = row.error_meta->text;
    if (error.find("Cancelled") != std::string::npos) expect(seen == 0, "what was cancelled was not sent", key);
    if (error.find("OutcomeUnknown") != std::string::npos)
      expect(in_doubt_.contains(key), "only what was under way is in doubt", key);
  }
  for (const auto& [key, id] : acknowledged_)
    expect(database_.calls.contains({key.first, id}), "what was acknowledged is there", {key.first, id});
}

}  // namespace baton::simulation
