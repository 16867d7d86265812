#include "tests/simulation/call_workload.hpp"

#include <algorithm>

#include "core/call/call.hpp"

namespace baton::simulation {

using call::CallKey;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t places_max = 5, per_origin_max = 3;
constexpr Duration timeout{5'000};  // of each call
// Nobody meddles with what may begin before the engine hears of it, though the clock be set.
constexpr Duration soon{120'000};

// So that the network knows what it carries.
void name_request(NewCall& call) {
  call.request.url = call.origin + "/" + call.key.id.value;
  if (call.request.probe)
    call.request.probe = Json{"{\"url\":\"http://probe:80/" + call.key.id.value + "\"}"};
}

bool has(const OptionalJson& meta, std::string_view word) { return meta && meta->text.contains(word); }

}  // namespace

// The store as it is read by whoever makes the calls.
class CallWorkload::StoredCalls final : public store::MemoryReads {
 public:
  explicit StoredCalls(CallWorkload& load) : MemoryReads(load.world_.tables_), load_(load) {}

  Result<std::optional<call::Call>> service_call(const CallKey& key) override {
    if (fails()) return away();
    return MemoryReads::service_call(key);
  }
  Result<Streams> streams_without_row(const call::EventKey& after, std::size_t events) override {
    if (fails()) return away();
    return MemoryReads::streams_without_row(after, events);
  }
  Result<std::optional<call::Request>> call_request(const CallKey& key) override {
    if (fails()) return away();
    return MemoryReads::call_request(key);
  }
  Result<std::vector<CallKey>> running_calls(const CallKey& after, std::size_t limit) override {
    if (fails()) return away();
    return MemoryReads::running_calls(after, limit);
  }
  Result<std::vector<call::Due>> due_calls(const call::Agenda::Refill& wanted) override {
    if (fails()) return away();
    return MemoryReads::due_calls(wanted);
  }
  Result<std::vector<std::pair<call::Destination, Time>>> destinations_due(Time after, Time until) override {
    if (fails()) return away();
    return MemoryReads::destinations_due(after, until);
  }

 private:
  bool fails() { return !load_.calm_ && load_.random_.chance(0.03); }
  static std::unexpected<Error> away() { return fail(Code::unavailable, "the store does not answer"); }
  CallWorkload& load_;
};

CallWorkload::CallWorkload(World& world)
    : world_(world),
      random_(world.random_),
      calm_(world.calm_),
      database_(world.database_),
      began_(world.clock_.time),
      stored_(std::make_unique<StoredCalls>(*this)) {}
CallWorkload::~CallWorkload() = default;

void CallWorkload::expect(bool holds, const std::string& what, const CallKey& key) {
  if (!holds) throw Violation{what + " (service call " + key.id.value + " of " + key.tenant.value + ")"};
}

// --- the server

void CallWorkload::set_options(EngineOptions& options) {
  options.kinds.calls.scheduled = [this](std::vector<DueCall> calls) {
    std::ranges::move(calls, std::back_inserter(told_));
    step_after({});
  };
}

Duration CallWorkload::storm_lasts() const { return 13min; }
Duration CallWorkload::calm_lasts() const { return 2h; }

void CallWorkload::engine_started() {
  told_.clear();
  wake_at_.reset();
  caller::DispatchOptions options;
  options.window = 2;
  options.starts_max = 3;
  options.outcomes_max = 3;
  options.events_looked_at = 20;
  options.look_after = Duration{random_.between(1, 200)};
  options.look_again = Duration{random_.between(60'000, 600'000)};
  options.name = "life-" + std::to_string(life_);
  places_ = std::make_shared<caller::Places>(caller::Places::Limits{places_max, per_origin_max}, options.name);
  dispatch_ = std::make_unique<caller::Dispatch>(static_cast<caller::DispatchActions&>(*this), metrics_,
                                                 places_, options);
  step_after({});
}

void CallWorkload::engine_died() {
  on_the_wire_.clear();
  ++life_;
  dispatch_.reset();
  places_.reset();
  for (const auto& [key, status] : statuses())
    if (status == call::Status::running) in_doubt_.insert(key);
  if (!calm_) damage_rows();
}

// Rows are lost and damaged while nobody looks; events are not.
void CallWorkload::damage_rows() {
  auto& rows = world_.tables_.calls;
  for (const auto& [key, status] : statuses()) {
    if (!rows.contains(key)) continue;
    const auto what = random_.below(40);
    if (what == 0) {
      rows.erase(key);
      continue;
    }
    rows.change(key, [&, status = status](call::Call& row) {
      if (what == 1) row.status = static_cast<call::Status>(random_.below(4));
      if (what == 2) row.version += random_.between(-1, 1);
      // Of one that has ended, only `check --replay` finds it.
      if (what == 3 && status == call::Status::scheduled)
        row.due_at = world_.clock_.now() + Duration{random_.between(-600'000, 36'000'000)};
    });
  }
}

// In order: what is idle can be left without any doubt.
void CallWorkload::stop() {
  if (!dispatch_) return;
  dispatch_->begin_no_more();
  if_alive(3s, [this] {
    for (const auto& [key, status] : statuses())
      expect(!dispatch_->idle() || status != call::Status::running || in_doubt_.contains(key),
             "a server that is idle has nothing under way", key);
    world_.kill_engine();
  });
}

void CallWorkload::if_alive(Duration delay, std::function<void()> act) {
  after(delay, [this, life = life_, act = std::move(act)] {
    if (life == life_ && dispatch_) act();
  });
}

void CallWorkload::tell_engine(Command command, Then then) {
  world_.tell_engine(std::move(command), std::move(then));
}

void CallWorkload::step() {
  if (random_.chance(0.8)) tell_scheduled();
  const Duration wait = dispatch_->step(world_.clock_.now(), world_.clock_.time - began_);
  check_nothing_waits();
  if (told_.empty() && clients_left_ == 0 && at_rest() && rows_are_right()) return;  // a call wakes it
  step_after(std::max(wait, Duration{1}));
}

// The earliest of what is asked for.
void CallWorkload::step_after(Duration delay) {
  const Time at = world_.clock_.time + delay;
  if (wake_at_ && *wake_at_ <= at) return;
  wake_at_ = at;
  if_alive(delay, [this, at] {
    if (wake_at_ != at) return;
    wake_at_.reset();
    step();
  });
}

// --- clients

void CallWorkload::start() {
  for (int i = 0; i < clients_left_; ++i)
    after(Duration{random_.between(0, 600'000)}, [this] {
      client();
      --clients_left_;
    });
  for (std::int64_t i = random_.between(0, 6); i > 0; --i)
    after(Duration{random_.between(0, 700'000)}, [this] {
      if (random_.chance(0.3)) return stop();
      if (dispatch_) world_.kill_engine();
    });
}

void CallWorkload::client() {
  const Time now = world_.clock_.now();
  const auto what = random_.below(10);
  if (what < 1)  // many at once
    for (int i = 0; i < 8; ++i) submit(now + 2s);
  else if (what < 2)  // … and at once
    for (int i = 0; i < 4; ++i) submit(now);
  else if (what < 6 || submitted_.empty())
    submit(now + Duration{random_.between(-5'000, 250'000)});
  else if (what < 8)
    change(submitted_[random_.below(submitted_.size())].key);
  else
    meddle();
}

void CallWorkload::submit(Time due) {
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
void CallWorkload::submit(NewCall wanted, Then then) {
  if (places_ && *wanted.due_at <= world_.clock_.now())
    wanted.place = places_->reserve({wanted.key.tenant, wanted.origin});
  if (wanted.place && random_.chance(0.05)) return;
  if (!wanted.place || random_.chance(0.5))
    return tell_engine(SubmitCalls{{std::move(wanted)}}, std::move(then));
  if_alive(Duration{random_.between(0, 20)}, [this, wanted = std::move(wanted), then = std::move(then)] {
    tell_engine(SubmitCalls{{wanted}}, then);
  });
}

void CallWorkload::change(const CallKey& key) {
  ChangeCall command{.key = key, .by = "ada"};
  command.what = random_.chance(0.3) ? ChangeCall::What::cancel : ChangeCall::What::reschedule;
  command.due_at = world_.clock_.now() + Duration{random_.between(-5'000, 200'000)};
  tell_engine(std::move(command));
}

// A row that is still found is not to be believed. A call that is being made ends without its row being read: what its end
// does not write stays damaged until the Dispatch looks.
void CallWorkload::damage(const CallKey& key) {
  const call::Call* row = world_.tables_.calls.get(key);
  if (row == nullptr || is_terminal(row->status)) return;
  const bool in_tags = row->status == call::Status::running && random_.chance(0.5);
  world_.tables_.calls.change(key, [&](call::Call& damaged) {
    if (in_tags)
      damaged.tags = "[";
    else
      --damaged.version;
  });
}

void CallWorkload::meddle() {
  if (random_.chance(0.2)) return damage(submitted_[random_.below(submitted_.size())].key);
  const NewCall& chosen = submitted_[random_.below(submitted_.size())];
  const auto row = call::fold(database_.stream(chosen.key));
  const auto what = random_.below(3);
  if (what == 0 && chosen.idempotency_key) return submit_again(chosen);
  if (!row) return;
  const bool is_over = is_terminal(row->status);
  const bool will_wait = row->status == call::Status::scheduled && row->due_at > world_.clock_.now() + soon;
  if (what == 0 && is_over && !is_repeated(chosen.key)) {  // once more, as a call of its own
    RepeatCall again{.origin = chosen.key, .new_id = {}, .due_at = world_.clock_.now() + 1s};
    again.new_id = call::CallId{"call-" + std::to_string(10'000 + ++next_id_)};
    repeats_[{chosen.key.tenant, again.new_id}] = chosen.key;
    tell_engine(std::move(again));
  } else if (what == 1 && (is_over || will_wait)) {  // a late word, perhaps the second one
    tell_engine(EndCalls{{CallOutcome{chosen.key, random_.chance(0.5), Json{"{}"}, "meddler"}}});
  } else if (row->status != call::Status::scheduled || will_wait) {
    tell_engine(StartCalls{"meddler", {chosen.key}}, [chosen](const Reply& reply) {
      const auto* started = std::get_if<StartedReply>(&reply);
      expect(!started || started->started.empty(), "a call is started once, and not before its time",
             chosen.key);
    });
  }
}

// A client that heard no answer asks again, and its call has another id now.
void CallWorkload::submit_again(const NewCall& chosen) {
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
}

// --- what the Dispatch wants

void CallWorkload::ask(caller::Ticket ticket, Command command) {
  // Somebody thinks better of it at the last moment, or a little later; or sets the clock back.
  if (const auto* start = std::get_if<StartCalls>(&command); start && !calm_) {
    if (random_.chance(0.2))
      if_alive(Duration{random_.between(0, 100)}, [this, key = start->keys.front()] { change(key); });
    if (random_.chance(0.02)) world_.set_clock(-Duration{random_.between(1, 5'000)});
  }
  if_alive(Duration{random_.between(0, 8)}, [this, ticket, command = std::move(command)] {
    tell_engine(command, [this, ticket, life = life_](const Reply& reply) {
      if (life != life_ || !dispatch_) return;
      tell_scheduled();  // of a commit those who wait hear first
      dispatch_->answered(ticket, reply, world_.clock_.now());
      step_after({});
    });
  });
}

void CallWorkload::tell_scheduled() {
  for (; !told_.empty(); told_.pop_front()) dispatch_->scheduled(told_.front(), world_.clock_.now());
}

Result<CallReads*> CallWorkload::reads() {
  if (!calm_ && random_.chance(0.03)) return fail(Code::unavailable, "the store does not answer");
  return stored_.get();
}

void CallWorkload::send(caller::Ticket ticket, const call::Destination& to, OutgoingRequest request) {
  on_the_wire_[ticket] = to;
  check_wire(to);
  const CallKey key = key_of(to, request);
  if (to.origin == "http://probe:80") return answer_probe(ticket, key);
  const auto folded = call::fold(database_.stream(key));
  expect(folded.has_value(), "what is sent was submitted", key);
  const call::Call& row = *folded;
  expect(row.status == call::Status::running, "a call is sent when its start is stored", key);
  expect(row.due_at <= row.started_at.value_or(Time{}), "a call is not made before its time", key);
  if (random_.chance(0.05)) {  // nobody listens
    return if_alive(1ms, [this, ticket] { end(ticket, {.kind = OutgoingKind::network_error}); });
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
    OutgoingResult result{.kind = OutgoingKind::answered, .may_have_left = true, .status = 200};
    if (what == 0) result.kind = OutgoingKind::http_error, result.status = 500;
    if (what == 1) result.kind = OutgoingKind::timeout, result.status = 0;
    end(ticket, result);
  });
}

void CallWorkload::answer_probe(caller::Ticket ticket, const CallKey& key) {
  expect(in_doubt_.contains(key), "only what was under way is probed", key);
  OutgoingResult result{.kind = OutgoingKind::http_error, .may_have_left = true, .status = 404};
  if (seen_.contains(key)) result.kind = OutgoingKind::answered, result.status = 200;
  if (random_.chance(0.2)) {
    result.kind = OutgoingKind::http_error, result.status = 500;
    probed_in_vain_.insert(key);
  }
  if_alive(Duration{random_.between(1, 1'000)}, [this, ticket, result] { end(ticket, result); });
}

void CallWorkload::end(caller::Ticket ticket, const OutgoingResult& result) {
  on_the_wire_.erase(ticket);
  dispatch_->ended(ticket, result);
  step_after({});
}

// A request names its call; that of a repeated one names the first, so the one that runs is meant.
CallKey CallWorkload::key_of(const call::Destination& to, const OutgoingRequest& request) const {
  const CallKey named{to.tenant, call::CallId{request.url.substr(request.url.rfind('/') + 1)}};
  for (const auto& [again, first] : repeats_)
    if (const auto it = database_.calls.find(again);
        first == named && it != database_.calls.end() && it->second.status == call::Status::running)
      return again;
  return named;
}

// --- what holds

bool CallWorkload::is_repeated(const CallKey& key) const {
  return std::ranges::any_of(repeats_, [&](const auto& each) { return each.second == key; });
}

// What the streams say, whatever has become of the rows.
std::vector<std::pair<CallKey, call::Status>> CallWorkload::statuses() const {
  std::vector<std::pair<CallKey, call::Status>> all;
  for (const auto& [key, event] : database_.call_events) {
    if (all.empty() || all.back().first != key.first) all.emplace_back(key.first, call::Status{});
    all.back().second = call::status_after(event.event_type);
  }
  return all;
}

bool CallWorkload::rows_are_right() const {
  return std::ranges::all_of(statuses(), [&](const auto& each) {
    const call::Call* row = world_.tables_.calls.get(each.first);
    return row != nullptr && row->status == each.second && *row == *call::fold(database_.stream(each.first));
  });
}

bool CallWorkload::at_rest() const {
  return dispatch_ && std::ranges::all_of(statuses(), [](const auto& each) { return is_terminal(each.second); });
}

void CallWorkload::check_places() const {
  std::map<Tenant, std::size_t> by_tenant;
  std::size_t all = 0;
  for (const auto& [key, status] : statuses()) {
    if (status != call::Status::running || in_doubt_.contains(key)) continue;
    expect(++all <= places_max, "no more can be in doubt than there are places", key);
    expect(++by_tenant[key.tenant] <= (places_max + 1) / 2, "a tenant leaves places for others", key);
  }
}

void CallWorkload::check_wire(const call::Destination& to) const {
  const auto of = [&](auto same) {
    return static_cast<std::size_t>(
        std::ranges::count_if(on_the_wire_, [&](const auto& each) { return same(each.second); }));
  };
  expect(of([&](const call::Destination& each) { return each.origin == to.origin; }) <= per_origin_max,
         "an origin is not asked for more than it is to bear", {to.tenant, {}});
  expect(of([&](const call::Destination& each) { return each == to; }) <= (per_origin_max + 1) / 2,
         "a tenant leaves places of an origin for others", {to.tenant, {}});
}

// When there is no trouble any more and nothing is under way, nothing that is due waits.
void CallWorkload::check_nothing_waits() const {
  if (world_.clock_.time < world_.storm_ends_ + 2min || !on_the_wire_.empty()) return;
  for (const auto& [key, status] : statuses())
    expect(status != call::Status::scheduled ||
               call::fold(database_.stream(key))->due_at + 5s > world_.clock_.now(),
           "what is due is made", key);
}

void CallWorkload::check_touched() { check_places(); }

void CallWorkload::check_all() {
  std::map<CallKey, std::vector<call::EventRow>> streams;
  for (const auto& [key, event] : database_.call_events) streams[key.first].push_back(event);
  for (const auto& [key, events] : streams) {
    const auto folded = call::fold(events);
    const call::Call* row = world_.tables_.calls.get(key);
    expect(folded && row != nullptr && *folded == *row, "a call is the fold of its events", key);
    const auto ends = std::ranges::count_if(events, [](const call::EventRow& event) {
      return event.event_type == call::EventType::succeeded || event.event_type == call::EventType::failed;
    });
    expect(ends == 1, "a call ends once", key);
    check_ended(*folded);
  }
  for (const auto& [key, id] : acknowledged_)
    expect(database_.calls.contains({key.first, id}), "what was acknowledged is there", {key.first, id});
}

void CallWorkload::check_ended(const call::Call& row) const {
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
