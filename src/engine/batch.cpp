#include "engine/batch.hpp"

#include <algorithm>
#include <iterator>

#include "base/mutant.hpp"

namespace baton::engine {

Batch::Batch(BatchServices& services, Time now, std::optional<Time> until, std::vector<Item> items, TimerChoice timers)
    : services_(services), now_(now), until_(until), timers_wanted_(std::move(timers)), items_(std::move(items)) {
  for (const auto& kind : services_.kinds)
    parts_.push_back(kind->begin({services_.store, services_.matching, now_, std::min(now_, services_.as_of), effects_}));
}

Batch::~Batch() = default;

template <class Is>
Transaction* Batch::part_where(Is&& is) const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (is(*services_.kinds[i])) return parts_[i].get();
  return nullptr;
}

Transaction* Batch::part_of(Subject::Type type) const {
  return part_where([&](const Kind& kind) { return kind.owns(type); });
}

Transaction* Batch::part_of(const Timer& timer) const {
  return part_where([&](const Kind& kind) { return kind.owns_timer(timer); });
}

bool Batch::is_incomplete() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->is_incomplete(); });
}

bool Batch::is_full() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->is_full(); });
}

bool Batch::can_be_divided() const {
  return items_.size() + timers_.size() > 1 || (!items_.empty() && tasks_tried_ > 0) ||
         (!timers_.empty() && timers_wanted_.which != TimerChoice::Which::put_off);
}

Result<bool> Batch::again(Time now) {
  constexpr int tries_max = 3;
  constexpr Duration time_max{1'500};
  if (++tries_ > tries_max || now - now_ >= time_max) return false;
  for (const auto& part : parts_) TRY(part->restart());
  timers_.clear();
  return true;
}

// ---- load and decide

Result<> Batch::decide() {
  TRY(take_due());
  constexpr int rounds_max = 1'000;  // each learns something, so this ends long before
  for (int round = 0; round < rounds_max; ++round) {
    TRY(decide_once());
    if (!is_incomplete()) return {};
    for (const auto& part : parts_) TRY(part->restart());
    if (services_.redecided) services_.redecided->add();
  }
  return fail(Code::invalid, "what is stored does not fit together: it cannot be decided");
}

Result<> Batch::take_due() {
  if (timers_wanted_.which != TimerChoice::Which::due) {
    timers_ = timers_wanted_.named;
    took_timers_ = !timers_.empty();
  } else if (until_) {
    const std::size_t limit = services_.limits.timers_max;
    TRY_ASSIGN(timers_, services_.store.timers_due(*until_, limit));
    took_timers_ = true;
    more_timers_ = timers_.size() == limit;
    leave_out_unknown();
  }
  return {};
}

// A later version, or another program, may have written them.
void Batch::leave_out_unknown() {
  const auto unknown =
      std::ranges::stable_partition(timers_, [&](const Timer& timer) { return part_of(timer) != nullptr; });
  timers_unknown_.assign(unknown.begin(), unknown.end());
  timers_.erase(unknown.begin(), unknown.end());
  for (const Timer& timer : timers_unknown_)
    add_effect(Warn{timer.subject, "a timer of '" + timer.subject.id + "' cannot be obeyed: this version does not know what it is"});
}

Result<> Batch::decide_once() {
  std::erase_if(effects_, [](const Effect& effect) { return !std::holds_alternative<Warn>(effect); });
  effects_.reserve(items_.size() + 8);
  handouts_.reset();
  handouts_count_ = tasks_tried_ = 0;
  if (is_put_off()) return {};  // nothing is loaded: a row may be what cannot be read
  TurnTimes& times = services_.times;
  const auto began = TurnTimes::Clock::now();
  for (const auto& part : parts_) TRY(part->load(items_, timers_));
  const auto loaded = TurnTimes::Clock::now();
  decide_heartbeats();
  decide_timers();
  decide_items();
  times.load += loaded - began;
  times.decide += TurnTimes::Clock::now() - loaded;
  if (is_incomplete()) return {};
  times.messages += items_.size();
  times.timers += timers_.size();
  if (timers_wanted_.which == TimerChoice::Which::due) TRY(hand_out());
  if (is_incomplete()) {
    services_.matching.forget_waiting();  // what was taken from the windows was not handed out
    return {};
  }
  for (const auto& part : parts_) {
    if (more_timers_) part->timers_go_behind();
    TRY(part->complete());
  }
  if (is_incomplete()) services_.matching.forget_waiting();
  return {};
}

void Batch::answer(const std::shared_ptr<Waiter>& waiter, Reply reply) {
  if (MUTANT(reply_before_commit)) return waiter->deliver(std::move(reply));
  effects_.emplace_back(Answer{waiter, std::move(reply)});
}

// Before the timers: a worker that has renewed its lease in time must not lose it because the server was slow
// to look.
void Batch::decide_heartbeats() {
  for (const Item& item : items_)
    if (const auto* heartbeat = std::get_if<Heartbeat>(&item.command)) renew_leases(*heartbeat, item.waiter);
}

void Batch::decide_timers() {
  for (const Timer& timer : timers_) {
    Transaction* part = part_of(timer);
    ENSURE(part);
    const auto began = TurnTimes::Clock::now();
    part->fire(timer);
    services_.times.decided(began, timer);
  }
}

void Batch::decide_items() {
  std::size_t decided = 0;
  for (; decided < items_.size() && !is_full(); ++decided) decide_item(decided);
  const auto rest = std::stable_partition(
      items_.begin() + static_cast<std::ptrdiff_t>(decided), items_.end(),
      [](const Item& item) { return std::holds_alternative<Heartbeat>(item.command); });  // has been decided
  // Those of an earlier round came after them.
  deferred_.insert(deferred_.begin(), std::make_move_iterator(rest), std::make_move_iterator(items_.end()));
  items_.erase(rest, items_.end());
}

void Batch::decide_item(std::size_t place) {
  const Item& item = items_[place];
  if (std::holds_alternative<Heartbeat>(item.command)) return;
  if (const auto* back = std::get_if<ReturnTasks>(&item.command)) {
    give_back(*back);
    return answer(item.waiter, ReturnReply{});
  }
  if (const auto* list = std::get_if<ListWorkers>(&item.command))
    return answer(item.waiter, WorkersReply{services_.matching.list_workers(list->tenant, now_)});
  if (const auto* look = std::get_if<LookAtQueues>(&item.command))
    return answer(item.waiter, services_.matching.look_at(*look, now_));
  Transaction* part = part_of(subject_type(item.command));
  ENSURE(part);
  const auto began = TurnTimes::Clock::now();
  part->decide(place, item);
  services_.times.decided(began, item);
}

void Batch::renew_leases(const Heartbeat& heartbeat, const std::shared_ptr<Waiter>& waiter) {
  const Duration lease_time = heartbeat.lease_time.value_or(services_.limits.short_lease);
  HeartbeatReply reply{.lease_until = now_ + lease_time};
  std::optional<Tenant> tenant = heartbeat.tenant;
  std::vector<std::string> running;
  for (const TaskLease& lease : heartbeat.tasks) {
    Transaction* part = part_of(type_of_task(lease.task_id));
    ENSURE(part);
    const Renewal renewal = part->renew(lease, lease_time, heartbeat.tenant);
    if (!renewal.renewed) reply.cancelled.push_back(lease.task_id);
    if (!tenant) tenant = renewal.tenant;
    running.push_back(lease.task_id);
  }
  if (tenant) effects_.emplace_back(WorkerBeat{*tenant, heartbeat.worker, std::move(running), reply.lease_until});
  answer(waiter, std::move(reply));
}

void Batch::give_back(const ReturnTasks& back) {
  for (const TaskLease& lease : back.tasks) {
    Transaction* part = part_of(type_of_task(lease.task_id));
    ENSURE(part);
    part->give_back(lease, back.reason);
  }
}

// ---- hand out

Result<> Batch::hand_out() {
  std::vector<Ready> ready;
  for (const auto& part : parts_) std::ranges::move(part->take_ready(), std::back_inserter(ready));
  handouts_ = std::make_unique<Handouts>(services_.matching, services_.store, *this, services_.limits.handouts_max, now_);
  const auto began = TurnTimes::Clock::now();
  const Result<> done = handouts_->run(std::move(ready));
  services_.times.hand_out += TurnTimes::Clock::now() - began;
  TRY(done);
  handouts_count_ = handouts_->count();
  if (handouts_->has_stalled()) add_effect(MatchAllAt{now_ + std::chrono::seconds{1}});
  return {};
}

Result<> Batch::load_tasks(std::span<const WaitingTask> tasks) {
  for (const auto& part : parts_) TRY(part->load_tasks(tasks));
  return {};
}

std::optional<Handout> Batch::hand_out(const WaitingTask& task, const Poll& poll) {
  Transaction* part = part_of(task.type);
  ENSURE(part);
  ++tasks_tried_;
  return part->hand_out(task, poll);
}

// ---- write

WriteSet& Batch::write(std::int64_t commit_number) {
  WriteSet& out = writes_ = {};
  for (const auto& part : parts_) part->write(out, commit_number);
  if (handouts_) handouts_->take_effects(effects_);
  // The row of a timer that is put off keeps its time, which has passed.
  Time later = now_ + timers_wanted_.later;
  for (const auto* timers : {is_put_off() ? &timers_ : nullptr, &timers_unknown_}) {
    if (!timers) continue;
    for (const Timer& timer : *timers) {
      out.timers_gone.push_back(timer);
      out.timers_new.push_back({later, timer.subject, timer.what});
      later += Duration{1};  // there may be two of one subject
    }
  }
  earliest_timer_ = out.earliest_timer();
  return out;
}

void Batch::committed() {
  for (const auto& part : parts_) part->committed(writes_);
}

}  // namespace baton::engine
