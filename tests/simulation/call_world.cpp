#include "tests/simulation/call_world.hpp"

#include <algorithm>

#include "core/call/call.hpp"
#include "tests/support/without_calls.hpp"

namespace baton::simulation {

using call::CallKey;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t places_max = 5, per_origin_max = 3;
constexpr Duration timeout{5'000};  // of each call
const Time begin_of_time = *from_iso("2027-01-15T09:00:00Z");
const Time end_of_trouble = begin_of_time + 13min;

class Listener final : public Waiter {
 public:
  explicit Listener(std::function<void(Reply)> then) : then_(std::move(then)) {}
  void deliver(Reply reply) override { then_(std::move(reply)); }

 private:
  std::function<void(Reply)> then_;
};

// So that the network knows what it carries.
void name_request(NewCall& call) {
  call.request.url = call.origin + "/" + call.key.id.value;
  if (call.request.probe)
    call.request.probe = Json{"{\"url\":\"http://probe:80/" + call.key.id.value + "\"}"};
}

bool has(const OptionalJson& meta, std::string_view word) { return meta && meta->text.contains(word); }

}  // namespace

// The store as it is read by whoever makes the calls.
class CallWorld::StoredCalls final : public support::WithoutCalls<> {
 public:
  StoredCalls(const support::MemoryDatabase& database, std::function<bool()> fails)
      : database_(database), fails_(std::move(fails)) {}

  Result<std::optional<call::Call>> service_call(const CallKey& key) override {
    if (fails_()) return away();
    const auto events = database_.stream(key);
    return call::fold(events);
  }
  Result<std::optional<call::Request>> call_request(const CallKey& key) override {
    if (fails_()) return away();
    const auto it = database_.call_requests.find(key);
    return it == database_.call_requests.end() ? std::nullopt : std::optional{it->second};
  }
  Result<std::vector<CallKey>> running_calls(const CallKey& after, std::size_t limit) override {
    if (fails_()) return away();
    std::vector<CallKey> found;
    for (const auto& [key, row] : database_.calls)
      if (row.status == call::Status::running && key > after && found.size() < limit) found.push_back(key);
    return found;
  }
  Result<std::vector<call::Due>> due_calls(const call::Agenda::Refill& wanted) override {
    if (fails_()) return away();
    std::set<call::Due> all;
    for (const auto& [key, row] : database_.calls)
      if (row.status == call::Status::scheduled && call::Lane{row.tenant_id, row.origin} == wanted.lane)
        all.insert({row.due_at, row.service_call_id});
    std::vector<call::Due> found;
    for (auto it = all.upper_bound(wanted.after); it != all.end() && it->at <= wanted.until; ++it)
      if (found.size() < wanted.limit) found.push_back(*it);
    return found;
  }
  Result<std::vector<std::pair<call::Lane, Time>>> lanes_due(Time after, Time until) override {
    if (fails_()) return away();
    std::map<call::Lane, Time> found;
    for (const auto& [key, row] : database_.calls) {
      if (row.status != call::Status::scheduled || row.due_at <= after || row.due_at > until) continue;
      const auto lane = found.try_emplace({row.tenant_id, row.origin}, row.due_at).first;
      lane->second = std::min(lane->second, row.due_at);
    }
    return std::vector<std::pair<call::Lane, Time>>(found.begin(), found.end());
  }
  Result<Streams> streams_without_row(const call::EventKey& after, std::size_t events) override {
    if (fails_()) return away();
    Streams found;
    auto it = database_.call_events.upper_bound({after.call, after.version});
    for (; it != database_.call_events.end() && events > 0; ++it, --events) {
      const auto& [key, version] = it->first;
      found.last = call::EventKey{key, version};
      const auto next = std::next(it);
      if (next != database_.call_events.end() && next->first.first == key) continue;
      const auto row = database_.calls.find(key);
      if (row == database_.calls.end() || row->second.version != version ||
          row->second.status != call::status_after(it->second.event_type))
        found.without_row.push_back(key);
    }
    if (events > 0) found.last.reset();
    return found;
  }

 private:
  static std::unexpected<Error> away() { return fail(Code::unavailable, "the store does not answer"); }
  const support::MemoryDatabase& database_;
  const std::function<bool()> fails_;
};

CallWorld::CallWorld(std::uint64_t seed) : random_(seed ^ 0xca11), time_(begin_of_time) {
  clock_.at = time_;
  stored_ = std::make_unique<StoredCalls>(database_, [this] { return !calm_ && random_.chance(0.03); });
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
    if (life == life_ && dispatch_) act();
  });
}

void CallWorld::run() {
  for (int i = 0; i < 30; ++i) after(Duration{random_.between(0, 600'000)}, [this] { client(); });
  for (std::int64_t i = random_.between(0, 6); i > 0; --i)
    after(Duration{random_.between(0, 700'000)}, [this] { random_.chance(0.3) ? stop() : die(); });
  constexpr int steps_max = 40'000;
  for (int steps = 0; !(calm_ && all_over()); ++steps) {
    expect(steps < steps_max, "every call ends", {});
    if (future_.empty()) after(1s, [] {});
    const auto next = future_.begin();
    const Duration passed = next->first.first - time_;
    time_ = next->first.first;
    clock_.at += passed;
    calm_ = time_ > end_of_trouble;
    if (!calm_ && random_.chance(0.003))
      clock_.at += Duration{random_.between(-20'000, 60'000)};  // somebody sets it
    const auto act = std::move(next->second);
    future_.erase(next);
    act();
    step();
    check_places();
    check_nothing_waits();
  }
  check_all();
}

void CallWorld::step() {
  if (!dispatch_) return;
  if (random_.chance(0.8)) tell_scheduled();
  if (!dispatch_) return;
  const Duration wait = dispatch_->step(clock_.at, time_ - begin_of_time);
  const Time at = time_ + std::max(wait, Duration{1});
  if (wake_at_ && *wake_at_ > time_ && *wake_at_ <= at) return;
  wake_at_ = at;
  after(at - time_, [] {});
}

// --- the server

// Rows are lost and damaged while nobody looks; events are not.
void CallWorld::damage_rows() {
  for (auto it = database_.calls.begin(); it != database_.calls.end();) {
    call::Call& row = it->second;
    const auto what = random_.below(40);
    if (what == 0) {
      it = database_.calls.erase(it);
      continue;
    }
    if (what == 1) row.status = static_cast<call::Status>(random_.below(4));
    if (what == 2) row.version += random_.between(-1, 1);
    if (what == 3) row.due_at = std::min(row.due_at, clock_.at);
    ++it;
  }
}

void CallWorld::start() {
  if (!calm_) damage_rows();
  store_ = std::make_unique<support::MemoryStore>(database_, [this] {
    using enum support::CommitFault;
    if (calm_) return none;
    return random_.chance(0.02)   ? fail_before
           : random_.chance(0.02) ? unknown_applied
           : random_.chance(0.02) ? unknown_lost
                                  : none;
  });
  engine::WriterOptions options;
  options.calls_scheduled = [this](std::vector<DueCall> calls) {
    std::ranges::move(calls, std::back_inserter(told_));
  };
  writer_.reset();
  feed_ = std::make_unique<Feed>();
  feed_read_ = 0;
  told_by_feed_.clear();
  before_.clear();
  for (const auto& [key, row] : database_.calls) before_[key] = row.version;
  options.feed = feed_.get();
  writer_ = std::make_unique<engine::Writer>(*store_, clock_, options);
  (void)writer_->open();
  told_.clear();
  wake_at_.reset();
  caller::DispatchOptions dispatch;
  dispatch.window = 2;
  dispatch.starts_max = 3;
  dispatch.outcomes_max = 3;
  dispatch.events_looked_at = 20;
  dispatch.look_after = Duration{random_.between(1, 200)};
  dispatch.name = "life-" + std::to_string(life_);
  places_ =
      std::make_shared<caller::Places>(caller::Places::Limits{places_max, per_origin_max}, dispatch.name);
  dispatch_ =
      std::make_unique<caller::Dispatch>(static_cast<caller::Outside&>(*this), metrics_, places_, dispatch);
}

// In order: what is idle can be left without any doubt.
void CallWorld::stop() {
  if (!dispatch_) return;
  dispatch_->begin_no_more();
  if_alive(3s, [this] {
    for (const auto& [key, status] : statuses())
      expect(!dispatch_->idle() || status != call::Status::running || in_doubt_.contains(key),
             "a server that is idle has nothing under way", key);
    die();
  });
}

void CallWorld::die() {
  if (!dispatch_) return;
  on_the_wire_.clear();
  ++life_;
  ++restarts_;
  dispatch_.reset();
  places_.reset();
  writer_.reset();
  store_.reset();
  for (const auto& [key, status] : statuses())
    if (status == call::Status::running) in_doubt_.insert(key);
  after(Duration{random_.between(10, 30'000)}, [this] {
    if (!dispatch_) start();
  });
}

void CallWorld::tell_engine(Command command, Then then) {
  if (!writer_) return;
  std::vector<engine::Item> items;
  items.push_back({std::move(command), std::make_shared<Listener>(std::move(then))});
  const auto life = life_;
  writer_->run(std::move(items));
  if (life != life_) return;
  // The outcome of a commit was lost: the server dies of it, or comes back and looks.
  if (writer_->away() && !calm_ && random_.chance(0.3)) return die();
  while (writer_->away()) (void)writer_->open();
  check_feed();
}

// The feed, replayed, gives the rows.
void CallWorld::check_feed() {
  const auto records = feed_->after(feed_read_);
  for (const Record& record : *records) {
    feed_read_ = record->number;
    Changes::Reader reader(record->changes);
    for (Change change; reader.next(change);) {
      const CallKey key{Tenant{std::string(change.tenant)}, call::CallId{std::string(change.id)}};
      auto& [version, status] = told_by_feed_[key];
      expect(change.version == std::max(version, before_[key]) + 1, "the feed tells each event of a call once", key);
      version = change.version;
      if (!change.status.empty()) status = change.status;
    }
  }
  for (const auto& [key, row] : database_.calls) {
    if (const auto known = before_.find(key); known != before_.end() && known->second == row.version) continue;
    expect(told_by_feed_[key] == std::pair(row.version, std::string(name(row.status))),
           "the feed, replayed, gives the status of a call", key);
  }
}

// --- clients

void CallWorld::client() {
  const auto what = random_.below(10);
  if (what < 1)  // many at once
    for (int i = 0; i < 8; ++i) submit(clock_.at + 2s);
  else if (what < 2)  // … and at once
    for (int i = 0; i < 4; ++i) submit(clock_.at);
  else if (what < 6 || submitted_.empty())
    submit(clock_.at + Duration{random_.between(-5'000, 250'000)});
  else if (what < 8)
    change(submitted_[random_.below(submitted_.size())].key);
  else
    meddle();
}

void CallWorld::submit(Time due) {
  NewCall wanted;
  wanted.key = {Tenant{"tenant-" + std::to_string(random_.below(3))},
                call::CallId{"call-" + std::to_string(10'000 + ++next_id_)}};
  wanted.name = "n";
  wanted.origin = "http://host-" + std::to_string(random_.below(3)) + ":80";
  wanted.request_spec = Json{"{}"};
  wanted.request.method = "GET";
  wanted.request.timeout_ms = timeout.count();
  if (random_.chance(0.5)) wanted.request.probe = Json{};
  name_request(wanted);
  wanted.due_at = due;
  if (random_.chance(0.3)) wanted.idempotency_key = "key-" + std::to_string(next_id_);
  wanted.request_hash = "hash";
  submitted_.push_back(wanted);
  submit(wanted, [this, wanted](const Reply& reply) {
    if (const auto* made = std::get_if<CallsReply>(&reply); made && wanted.idempotency_key)
      acknowledged_.try_emplace({wanted.key.tenant, *wanted.idempotency_key},
                                made->calls.at(0)->call.service_call_id);
  });
}

// Whoever submits what is due reserves a place, and the engine hears of it a little later; or never.
void CallWorld::submit(NewCall wanted, Then then) {
  if (places_ && *wanted.due_at <= clock_.at)
    wanted.place = places_->reserve({wanted.key.tenant, wanted.origin});
  if (wanted.place && random_.chance(0.05)) return;
  if (!wanted.place || random_.chance(0.5))
    return tell_engine(SubmitCalls{{std::move(wanted)}}, std::move(then));
  if_alive(Duration{random_.between(0, 20)}, [this, wanted = std::move(wanted), then = std::move(then)] {
    tell_engine(SubmitCalls{{wanted}}, then);
  });
}

void CallWorld::change(const CallKey& key) {
  ChangeCall command{.key = key, .by = "ada"};
  command.what = random_.chance(0.3) ? ChangeCall::What::cancel : ChangeCall::What::reschedule;
  command.due_at = clock_.at + Duration{random_.between(-5'000, 200'000)};
  tell_engine(std::move(command));
}

// A row that is still found is not to be believed.
void CallWorld::damage(const CallKey& key) {
  const auto it = database_.calls.find(key);
  if (it != database_.calls.end() && it->second.status == call::Status::scheduled) --it->second.version;
}

void CallWorld::meddle() {
  if (random_.chance(0.2)) return damage(submitted_[random_.below(submitted_.size())].key);
  const NewCall& chosen = submitted_[random_.below(submitted_.size())];
  const auto it = database_.calls.find(chosen.key);
  const auto what = random_.below(3);
  if (what == 0 &&
      chosen.idempotency_key) {  // a client that heard no answer asks again, and his call has another id now
    NewCall again = chosen;
    again.key.id = call::CallId{"call-" + std::to_string(10'000 + ++next_id_)};
    name_request(again);
    submit(again, [this, again](const Reply& reply) {
      const auto* made = std::get_if<CallsReply>(&reply);
      if (!made) return;
      const auto& is = made->calls.at(0)->call.service_call_id;
      const auto known = acknowledged_.try_emplace({again.key.tenant, *again.idempotency_key}, is).first;
      expect(known->second == is, "one key is one call", again.key);
    });
  } else if (it == database_.calls.end()) {
    return;
  } else if (what == 0 && is_terminal(it->second.status) && !is_repeated(chosen.key)) {  // once more, as a call of its own
    RepeatCall again{.origin = chosen.key, .new_id = {}, .due_at = clock_.at + 1s};
    again.new_id = call::CallId{"call-" + std::to_string(10'000 + ++next_id_)};
    repeats_[{chosen.key.tenant, again.new_id}] = chosen.key;
    tell_engine(std::move(again));
  } else if (what == 1 &&
             it->second.status != call::Status::running) {  // a late word, perhaps the second one
    tell_engine(EndCalls{{CallOutcome{chosen.key, random_.chance(0.5), Json{"{}"}, "meddler"}}});
  } else if (it->second.status != call::Status::scheduled || it->second.due_at > clock_.at) {
    tell_engine(StartCalls{"meddler", {chosen.key}}, [this, chosen](const Reply& reply) {
      const auto* started = std::get_if<StartedReply>(&reply);
      expect(!started || started->started.empty(), "a call is started once, and not before its time",
             chosen.key);
    });
  }
}

// --- what the Dispatch wants

void CallWorld::ask(caller::Ticket ticket, Command command) {
  // Somebody thinks better of it at the last moment, or a little later; or sets the clock back.
  if (const auto* start = std::get_if<StartCalls>(&command); start && !calm_) {
    if (random_.chance(0.2))
      if_alive(Duration{random_.between(0, 100)}, [this, key = start->keys.front()] { change(key); });
    if (random_.chance(0.02)) clock_.at -= Duration{random_.between(1, 5'000)};
  }
  if_alive(Duration{random_.between(0, 8)}, [this, ticket, command = std::move(command)] {
    const auto life = life_;
    tell_engine(command, [this, ticket, life](Reply reply) {
      if (life != life_) return;
      if_alive(Duration{random_.between(0, 8)}, [this, ticket, reply = std::move(reply)] {
        tell_scheduled();  // of a commit those who wait hear first
        dispatch_->answered(ticket, reply, clock_.at);
      });
    });
  });
}

void CallWorld::tell_scheduled() {
  for (; !told_.empty(); told_.pop_front()) dispatch_->scheduled(told_.front(), clock_.at);
}

Result<CallReads*> CallWorld::reads() {
  if (!calm_ && random_.chance(0.03)) return fail(Code::unavailable, "the store does not answer");
  return stored_.get();
}

void CallWorld::send(caller::Ticket ticket, const call::Lane& lane, OutgoingRequest request) {
  on_the_wire_[ticket] = lane;
  check_wire(lane);
  const CallKey key = key_of(lane, request);
  if (lane.origin == "http://probe:80") return answer_probe(ticket, key);
  const auto folded = call::fold(database_.stream(key));
  expect(folded.has_value(), "what is sent was submitted", key);
  const call::Call& row = *folded;
  expect(row.status == call::Status::running, "a call is sent when its start is stored", key);
  expect(row.due_at <= row.started_at.value_or(Time{}), "a call is not made before its time", key);
  if (random_.chance(0.05)) {  // nobody listens
    return if_alive(1ms, [this, ticket] { end(ticket, {.kind = OutgoingResult::Kind::network_error}); });
  }
  // What has left the machine arrives, whatever becomes of the server; but not later than the call's timeout.
  const bool has_left = random_.chance(0.5);
  const Duration way{random_.between(0, has_left ? timeout.count() : 2)};
  const auto arrive = [this, key] { expect(++seen_[key] == 1, "a call is sent once", key); };
  if (has_left)
    after(way, arrive);
  else
    if_alive(way, arrive);
  if_alive(way + Duration{random_.between(1, 1'000)}, [this, ticket] {
    const auto what = random_.below(10);
    OutgoingResult result{.kind = OutgoingResult::Kind::answered, .may_have_left = true, .status = 200};
    if (what == 0) result.kind = OutgoingResult::Kind::http_error, result.status = 500;
    if (what == 1) result.kind = OutgoingResult::Kind::timeout, result.status = 0;
    end(ticket, result);
  });
}

void CallWorld::answer_probe(caller::Ticket ticket, const CallKey& key) {
  expect(in_doubt_.contains(key), "only what was under way is probed", key);
  OutgoingResult result{.kind = OutgoingResult::Kind::http_error, .may_have_left = true, .status = 404};
  if (seen_.contains(key)) result.kind = OutgoingResult::Kind::answered, result.status = 200;
  if (random_.chance(0.2)) {
    result.kind = OutgoingResult::Kind::http_error, result.status = 500;
    probed_in_vain_.insert(key);
  }
  if_alive(Duration{random_.between(1, 1'000)}, [this, ticket, result] { end(ticket, result); });
}

void CallWorld::end(caller::Ticket ticket, const OutgoingResult& result) {
  on_the_wire_.erase(ticket);
  dispatch_->ended(ticket, result);
}

// A request names its call; that of a repeated one names the first, so the one that runs is meant.
CallKey CallWorld::key_of(const call::Lane& lane, const OutgoingRequest& request) const {
  const CallKey named{lane.tenant, call::CallId{request.url.substr(request.url.rfind('/') + 1)}};
  for (const auto& [again, first] : repeats_)
    if (const auto it = database_.calls.find(again);
        first == named && it != database_.calls.end() && it->second.status == call::Status::running)
      return again;
  return named;
}

// --- what holds

bool CallWorld::is_repeated(const CallKey& key) const {
  return std::ranges::any_of(repeats_, [&](const auto& each) { return each.second == key; });
}

// What the streams say, whatever has become of the rows.
std::vector<std::pair<CallKey, call::Status>> CallWorld::statuses() const {
  std::vector<std::pair<CallKey, call::Status>> all;
  for (const auto& [key, event] : database_.call_events) {
    if (all.empty() || all.back().first != key.first) all.emplace_back(key.first, call::Status{});
    all.back().second = call::status_after(event.event_type);
  }
  return all;
}

bool CallWorld::all_over() const {
  if (!dispatch_) return false;
  const auto all = statuses();
  return std::ranges::all_of(all, [](const auto& each) { return is_terminal(each.second); });
}

void CallWorld::check_places() const {
  std::map<Tenant, std::size_t> by_tenant;
  std::size_t all = 0;
  for (const auto& [key, status] : statuses()) {
    if (status != call::Status::running || in_doubt_.contains(key)) continue;
    expect(++all <= places_max, "no more can be in doubt than there are places", key);
    expect(++by_tenant[key.tenant] <= (places_max + 1) / 2, "a tenant leaves places for others", key);
  }
}

void CallWorld::check_wire(const call::Lane& lane) const {
  const auto of = [&](auto same) {
    return static_cast<std::size_t>(
        std::ranges::count_if(on_the_wire_, [&](const auto& each) { return same(each.second); }));
  };
  expect(of([&](const call::Lane& each) { return each.origin == lane.origin; }) <= per_origin_max,
         "an origin is not asked for more than it is to bear", {lane.tenant, {}});
  expect(of([&](const call::Lane& each) { return each == lane; }) <= (per_origin_max + 1) / 2,
         "a tenant leaves places of an origin for others", {lane.tenant, {}});
}

// When there is no trouble any more and nothing is under way, nothing that is due waits.
void CallWorld::check_nothing_waits() const {
  if (time_ < end_of_trouble + 2min || !dispatch_ || !on_the_wire_.empty()) return;
  for (const auto& [key, status] : statuses())
    expect(status != call::Status::scheduled || call::fold(database_.stream(key))->due_at + 5s > clock_.at,
           "what is due is made", key);
}

void CallWorld::check_all() const {
  std::map<CallKey, std::vector<call::EventRow>> streams;
  for (const auto& [key, event] : database_.call_events) streams[key.first].push_back(event);
  for (const auto& [key, events] : streams) {
    const auto folded = call::fold(events);
    const auto row = database_.calls.find(key);
    expect(folded && row != database_.calls.end() && *folded == row->second,
           "a call is the fold of its events", key);
    const auto ends = std::ranges::count_if(events, [](const call::EventRow& event) {
      return event.event_type == call::EventType::succeeded || event.event_type == call::EventType::failed;
    });
    expect(ends == 1, "a call ends once", key);
    check_ended(*folded);
  }
  for (const auto& [key, id] : acknowledged_)
    expect(database_.calls.contains({key.first, id}), "what was acknowledged is there", {key.first, id});
}

void CallWorld::check_ended(const call::Call& row) const {
  const CallKey key = row.key();
  const bool seen = seen_.contains(key);
  if (row.status == call::Status::succeeded) return expect(seen, "what succeeded was received", key);
  if (has(row.error_meta, "Cancelled")) expect(!seen, "what was cancelled was not sent", key);
  if (has(row.error_meta, "settledBy") && has(row.error_meta, "NetworkError"))
    expect(!seen, "what a probe has not found was not received", key);
  if (!has(row.error_meta, "OutcomeUnknown")) return;
  expect(in_doubt_.contains(key), "only what was under way is in doubt", key);
  const bool has_probe = database_.call_requests.at(key).probe.has_value();
  expect(!has_probe || probed_in_vain_.contains(key), "what a probe can tell is not in doubt", key);
}

}  // namespace baton::simulation
