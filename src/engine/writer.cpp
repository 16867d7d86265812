#include "engine/writer.hpp"

#include <algorithm>
#include <utility>

#include "base/mutant.hpp"
#include "engine/kinds/kinds.hpp"

namespace baton::engine {

Writer::Writer(Store& store, const Clock& clock, WriterOptions options, WriterMetrics metrics)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      metrics_(metrics),
      kinds_(make_kinds(options_, metrics_)),
      matching_(options_.queue_window),
      workshop_{store_, kinds_, matching_,
                {options_.timers_max, options_.handouts_max, options_.policy.short_lease}, metrics_.redecided} {}

Writer::~Writer() = default;

// ---- opening

Result<> Writer::open() {
  auto state = store_.open();
  if (!state) {
    if (state.error().code == Code::fenced) fatal_ = state.error();
    return std::unexpected(state.error());
  }
  TRY_ASSIGN(next_timer_, store_.next_timer());
  last_commit_ = state->last_commit;
  away_ = false;
  retry_at_.reset();
  matching_.match_all();
  for (const auto& kind : kinds_) kind->opened(clock_.now());
  if (!std::exchange(opened_before_, true)) return start();
  if (!held_) return {};

  Held held = *std::exchange(held_, std::nullopt);
  const bool happened = last_commit_ == held.commit_number;
  if ((happened && !MUTANT(redo_unknown_blindly)) || MUTANT(release_unknown_as_done)) {
    perform(std::move(held.effects));
    matching_.match_all();
  } else {
    run(std::move(held.items));
  }
  return {};
}

// What each kind has to do once, before anybody else is served.
Result<> Writer::start() {
  for (const auto& kind : kinds_) {
    while (true) {
      TRY_ASSIGN(auto command, kind->at_start(store_));
      if (!command) break;
      own_items_.push_back({*std::move(command), std::make_shared<Nobody>()});
      run({});
      if (away_) return fail(Code::unavailable, "the store was lost while the server started");
    }
  }
  return {};
}

// ---- a turn

std::unique_ptr<Batch> Writer::batch(std::vector<Item> items, TimerChoice timers) {
  const Time now = clock_.now();
  const bool look = next_timer_ && *next_timer_ <= now;
  return std::make_unique<Batch>(workshop_, now, look ? std::optional{now} : std::nullopt, std::move(items),
                                 std::move(timers));
}

void Writer::run(std::vector<Item> items) {
  ENSURE(!away_);
  const Time now = clock_.now();
  retry_at_.reset();
  if (match_all_at_ && *match_all_at_ <= now) {
    match_all_at_.reset();
    matching_.forget_waiting();
  }
  std::vector<Item> rest = std::exchange(own_items_, {});
  std::ranges::move(matching_.take_overdue_waits(now), std::back_inserter(rest));
  rest.reserve(rest.size() + items.size());
  for (Item& item : items) {
    if (auto* poll = std::get_if<Poll>(&item.command))
      matching_.add_poll(std::move(*poll), std::move(item.waiter), now);
    else
      rest.push_back(std::move(item));
  }
  Line line;
  line.push_back(batch(std::move(rest), {}));
  run_line(std::move(line));
  // A commit in doubt may have served polls whose time is up: they are answered when its outcome is known.
  if (!held_) matching_.time_out_polls(now);
}

// Load, decide, commit, release. The store may refuse what one message brings, a NUL in a text for example, or
// another program may hold a row that it needs. The others must not suffer for it: the batch is divided, and
// each message tried alone. Many that all wait for the same row must not stop everybody: after a while the rest
// is told to come again.
void Writer::run_line(Line line) {
  constexpr Duration patience{6'000};
  const Duration lost_before = lost_to_others_;
  while (!line.empty()) {
    std::unique_ptr<Batch> batch = std::move(line.front());
    line.pop_front();
    if (away_ || lost_to_others_ - lost_before >= patience) {
      refuse(batch->take_items(), Refusal::store_unavailable,
             away_ ? "the store is not reachable at the moment"
                   : "other programs hold rows of the store; try again");
      continue;
    }
    Result<> done = batch->decide();
    std::ranges::move(batch->take_deferred(), std::back_inserter(own_items_));
    if (done) done = commit(*batch);
    if (done) {
      release(*batch);
      continue;
    }
    const Error& error = done.error();
    if (error.code == Code::unknown) {
      hold(*batch, error);
      continue;
    }
    trouble_ = error;
    forget();
    const bool collided = error.code == Code::conflict;  // with another program: nobody here is to blame
    const bool wrong = error.code == Code::invalid || error.code == Code::not_found;
    if (collided && batch->again(clock_.now()).value_or(false)) {
      line.push_front(std::move(batch));
    } else if ((wrong || collided) && batch->can_be_divided()) {
      Line parts = divide(*batch, error.code);
      line.insert(line.begin(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
    } else {
      refuse(*batch, error);
    }
  }
}

Result<> Writer::commit(Batch& batch) {
  const std::int64_t number = last_commit_ + 1;
  const WriteSet writes = batch.write(number);
  if (writes.empty()) return {};

  const Time before = clock_.now();
  const auto started = std::chrono::steady_clock::now();
  const Result<> done = store_.commit(writes, number);
  if (metrics_.commit_seconds) metrics_.commit_seconds->observe(std::chrono::steady_clock::now() - started);
  if (done) {
    last_commit_ = number;
    pause_ = Duration::zero();
    return {};
  }
  if (metrics_.commit_failures) metrics_.commit_failures->add();
  // Other programs write the tables of runbooks too; what they changed meanwhile is looked at anew.
  if (done.error().code == Code::conflict) lost_to_others_ += clock_.now() - before;
  return done;
}

void Writer::release(Batch& batch) {
  batch.committed();
  if (const auto& earliest = batch.earliest_timer())
    next_timer_ = next_timer_ ? std::min(*next_timer_, *earliest) : *earliest;
  if (batch.took_timers()) timers_were_taken(batch.more_timers());
  if (metrics_.batches) {
    metrics_.batches->add();
    metrics_.commands->add(batch.items_count());
    metrics_.timers->add(batch.timers_count());
    metrics_.handouts->add(batch.handouts_count());
  }
  perform(batch.take_effects());
}

void Writer::perform(Effects effects) {
  const Time now = clock_.now();
  for (Effect& effect : effects)
    std::visit(overloaded{
                   [](Answer& e) { e.waiter->deliver(std::move(e.reply)); },
                   [&](Await& e) { matching_.add_wait(std::move(e)); },
                   [&](Ended& e) { matching_.tell_end(e); },
                   [&](HandOut& e) { give_back(matching_.answer_poll(std::move(e))); },
                   [&](Enqueue& e) { matching_.enqueue(std::move(e)); },
                   [&](MatchAgain& e) { matching_.match_again(std::move(e.queues)); },
                   [&](MatchAllAt& e) { match_all_at_ = match_all_at_.value_or(e.at); },
                   [&](WorkerBeat& e) { matching_.workers().beat(e.tenant, e.heartbeat, e.lease_until, now); },
                   [&](WorkerReported& e) {
                     matching_.workers().reported(e.tenant, e.worker, e.task_id, e.completed, now);
                   },
                   [](Notify& e) { e.tell(); },
                   [](Count& e) { e.counter->add(e.n); },
               },
               effect);
}

// ---- what goes wrong

void Writer::hold(Batch& batch, const Error& error) {
  trouble_ = error;
  away_ = true;
  held_ = Held{last_commit_ + 1, batch.take_effects(), batch.take_items()};
  forget();
}

// What is in memory may not be true: it is asked of the store again.
void Writer::forget() {
  matching_.forget_waiting();
  for (const auto& kind : kinds_) kind->forget();
}

// A timer that cannot be obeyed even alone is put off, so that it does not spoil every batch.
Writer::Line Writer::divide(Batch& whole, Code why) {
  constexpr Duration held_by_others{10'000};  // a timer's row or what it needs may soon be free
  using Which = TimerChoice::Which;
  Line parts;
  for (Timer& timer : whole.take_timers()) {
    TimerChoice choice{.which = whole.is_one_timer() ? Which::put_off : Which::one, .only = std::move(timer)};
    if (why == Code::conflict) choice.later = held_by_others;
    if (choice.which == Which::put_off && metrics_.postponed) metrics_.postponed->add();
    parts.push_back(batch({}, std::move(choice)));
  }
  for (Item& item : whole.take_items()) {
    std::vector<Item> one;
    one.push_back(std::move(item));
    parts.push_back(batch(std::move(one), {.which = Which::none}));
  }
  return parts;
}

// Nothing of the batch has happened. Its callers are told. Timers and waiting polls are tried again a little
// later: nobody is served by a busy loop.
void Writer::refuse(Batch& batch, const Error& error) {
  if (error.code == Code::fenced) fatal_ = error;
  const bool full = error.code == Code::full;
  const bool wrong = error.code == Code::invalid || error.code == Code::not_found;
  away_ = !full && !wrong && error.code != Code::conflict;
  refuse(batch.take_items(),
         full    ? Refusal::store_full
         : wrong ? Refusal::invalid_input
                 : Refusal::store_unavailable,
         error.message);
  pause_ = std::clamp(pause_ * 2, Duration{50}, Duration{2'000});
  retry_at_ = clock_.now() + pause_;
}

void Writer::refuse(std::vector<Item> items, Refusal refusal, const std::string& message) {
  for (Item& item : items) {
    // A task that is given back has nobody else to remember it: it is given back later.
    if (refusal != Refusal::invalid_input && std::holds_alternative<ReturnTasks>(item.command))
      own_items_.push_back(std::move(item));
    else
      item.waiter->deliver(Refused{refusal, message, {}});
  }
}

void Writer::abandon_held() {
  if (!held_) return;
  // The other effects stay: if it has happened after all, somebody was handed tasks by it.
  std::erase_if(held_->effects, [](const Effect& effect) {
    return std::holds_alternative<Answer>(effect) || std::holds_alternative<Await>(effect);
  });
  refuse(std::exchange(held_->items, {}), Refusal::store_unavailable,
         "the store was lost while this was being stored; it may or may not have happened");
}

void Writer::give_back(const PollReply& reply) {
  ReturnTasks back;
  for (const Handout& task : reply.jobs) back.tasks.push_back({task.task_id, task.lease});
  if (!back.tasks.empty()) own_items_.push_back({std::move(back), std::make_shared<Nobody>()});
}

// ---- time

// After a batch fired timers: when the next one is due.
void Writer::timers_were_taken(bool more) {
  if (more) {
    next_timer_ = clock_.now();
    return;
  }
  if (const auto next = store_.next_timer())
    next_timer_ = *next;
  else
    next_timer_ = clock_.now() + Duration{50};
}

std::optional<Time> Writer::next_wake() const {
  if (retry_at_) return retry_at_;
  if (!matching_.to_match().empty() || !own_items_.empty()) return Time{};
  std::optional<Time> wake;
  for (const std::optional<Time>& one : {next_timer_, matching_.next_deadline(), match_all_at_})
    if (one && (!wake || *one < *wake)) wake = one;
  return wake;
}

void Writer::expire_while_away() {
  const Time now = clock_.now();
  matching_.time_out_polls(now);
  refuse(matching_.take_overdue_waits(now), Refusal::store_unavailable, "the store is not reachable at the moment");
}

void Writer::finish() {
  matching_.end_all_polls();
  abandon_held();
  held_.reset();
  std::vector<Item> waits = matching_.take_all_waits();
  if (away_)
    refuse(std::move(waits), Refusal::stopping, "the server is stopping");
  else if (!waits.empty())
    run(std::move(waits));
}

}  // namespace baton::engine
