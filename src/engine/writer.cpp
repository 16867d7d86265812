#include "engine/writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/mutant.hpp"
#include "engine/pause.hpp"

namespace baton::engine {

Writer::Writer(Store& store, const Clock& clock, Kinds kinds, WriterOptions options, WriterMetrics metrics)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      metrics_(metrics),
      kinds_(std::move(kinds)),
      matching_(options_.queue_window, clock_.now()),
      services_{store_, kinds_, matching_,
                {options_.timers_max, options_.handouts_max, options_.short_lease}, metrics_.redecided},
      tables_(store_, clock_, options_, metrics_.follow_seconds) {}

namespace {

constexpr const char* busy_message = "another program holds the database, or rows of it; try again";

// Nothing that this process can do makes it pass, and what it writes may do harm.
bool is_final(const Error& error) { return error.code == Code::fenced || error.code == Code::corrupt; }

// Since when somebody waits for a decision. What the engine tells itself came from nowhere.
Time oldest(const std::vector<Item>& items, Time time) {
  for (const Item& item : items)
    if (item.received != Time{}) time = std::min(time, item.received);
  return time;
}

}  // namespace

Writer::~Writer() = default;

// ---- opening

Result<> Writer::open() {
  ENSURE(!under_way_);
  auto state = store_.open(options_.partition);
  if (!state) {
    if (is_final(state.error())) fatal_ = state.error();
    return std::unexpected(state.error());
  }
  TRY_ASSIGN(next_timer_, store_.next_timer());
  last_commit_ = state->last_commit;
  tables_.opened(last_commit_);
  away_ = false;
  retry_at_.reset();
  matching_.match_all();
  for (const auto& kind : kinds_) kind->opened(clock_.now(), options_.short_lease);
  if (!opened_before_) {
    const Result<> started = start();
    opened_before_ = started.has_value();
    away_ = away_ || !started;
    return started;
  }
  if (!held_) return {};

  Held held = *std::exchange(held_, std::nullopt);
  const bool happened = last_commit_ == held.commit_number;
  if ((happened && !MUTANT(redo_unknown_blindly)) || MUTANT(release_unknown_as_done)) {
    matching_.expect(held.effects);
    perform(std::move(held.effects));
    matching_.match_all();
  } else {  // with the next batch, which knows what else has come in: no timer may overtake that
    if (MUTANT(feed_tells_lost_commit))
      for (Effect& effect : held.effects)
        if (auto* changed = std::get_if<Changed>(&effect)) tell_feed(std::move(*changed));
    std::ranges::move(own_items_, std::back_inserter(held.items));
    own_items_ = std::move(held.items);
  }
  return {};
}

// ---- a turn

std::unique_ptr<Batch> Writer::make_batch(Work work) {
  if (work.batch) return std::move(work.batch);
  const Time now = clock_.now();
  const Time until = std::min(now, services_.as_of);
  const bool look = next_timer_ && *next_timer_ <= until;
  return std::make_unique<Batch>(services_, now, look ? std::optional{until} : std::nullopt, std::move(work.items),
                                 std::move(work.timers));
}

void Writer::run(std::vector<Item> items) {
  ENSURE(!away_);
  services_.times = {};
  bool has_failed = false;
  if (under_way_ && !store_.is_committing()) {
    auto instead = settle();
    perform_durable();
    has_failed = instead.has_value();
    if (instead) run_line(std::move(*instead));
  }
  if (!away_) end_following();
  if (!away_ && tables_.is_doubted()) tables_are_doubted();
  if (away_) return refuse(std::move(items), Refusal::store_unavailable, trouble_.message);
  if (has_failed && retry_at_ && items.empty()) return;  // a pause comes first
  const Time now = clock_.now();
  retry_at_.reset();
  if (match_all_at_ && *match_all_at_ <= now) {
    match_all_at_.reset();
    matching_.forget_waiting();
  }
  std::vector<Item> rest = std::exchange(own_items_, {});
  if (give_back_at_ && *give_back_at_ <= now) {
    give_back_at_.reset();
    std::ranges::move(std::exchange(given_back_, {}), std::back_inserter(rest));
  }
  services_.as_of = MUTANT(timer_overtakes_message) ? now : oldest(rest, oldest(items, now));
  for (const auto& kind : kinds_) kind->turn_begins();
  rest.reserve(rest.size() + items.size());
  for (Item& item : items) {
    if (auto* poll = std::get_if<Poll>(&item.command))
      matching_.add_poll(std::move(*poll), std::move(item.waiter), now);
    else
      rest.push_back(std::move(item));
  }
  Line line;
  // Those who have waited long enough write nothing: they are not refused because somebody else's commit fails.
  if (auto waits = matching_.take_overdue_waits(now); !waits.empty())
    line.push_back({std::move(waits), {.which = TimerChoice::Which::these}, nullptr});
  line.push_back({std::move(rest), {}, nullptr});
  run_line(std::move(line));
  follow_when_due();
  // A commit in doubt may have served polls whose time is up: they are answered when its outcome is known.
  if (!held_) matching_.time_out_polls(now);
}

// Load, decide, commit, release. The store may refuse what one message brings, a NUL in a text for example, or
// another program may hold a row that it needs. The others must not suffer for it: the batch is divided, and
// its parts again, until that message is alone. Many that all wait for the same row must not stop everybody: after a while the rest
// is told to come again.
void Writer::run_line(Line line, Duration patience) {
  std::optional<Duration> lost_before;  // when the batch was divided
  const auto first = [&](Line works) {
    if (works.size() > 1 && !lost_before) lost_before = lost_to_others_;
    line.insert(line.begin(), std::make_move_iterator(works.begin()), std::make_move_iterator(works.end()));
  };
  while (!line.empty()) {
    Work work = std::move(line.front());
    line.pop_front();
    const bool too_long = lost_before && lost_to_others_ - *lost_before >= patience &&
                          work.timers.which != TimerChoice::Which::put_off;
    // Each would wait for it as long as the one before did.
    const bool busy = retry_at_ && trouble_.code == Code::busy;
    if (away_ || busy || too_long) {
      refuse(work.batch ? work.batch->take_items() : std::move(work.items), Refusal::store_unavailable,
             away_  ? "the store is not reachable at the moment"
             : busy ? busy_message
                    : "other programs hold rows of the store; try again");
      continue;
    }
    std::unique_ptr<Batch> batch = make_batch(std::move(work));
    const Time before = clock_.now();
    const Result<> decided = batch->decide();
    // A kind may write while a batch is decided, in a transaction of its own.
    if (!decided && decided.error().code == Code::conflict) lost_to_others_ += clock_.now() - before;
    std::vector<Item> deferred = batch->take_deferred();
    const Prepared prepared = decided ? prepare(*batch) : Prepared{};
    auto instead = settle();
    // It was decided upon what is not stored. While the store is away its messages wait, as those of the commit do.
    if (away_) std::ranges::move(batch->take_items(), std::back_inserter(own_items_));
    std::ranges::move(deferred, std::back_inserter(own_items_));
    if (instead || away_) {
      perform_durable();
      if (!away_) line.push_front({batch->take_items(), batch->timers_wanted(), nullptr});
      if (instead) first(std::move(*instead));
      continue;
    }
    const Result<> done = decided ? commit(batch, prepared) : decided;
    perform_durable();
    if (!batch) continue;  // it goes on beside what comes next
    if (done)
      release(*batch);
    else
      first(not_stored(std::move(batch), {}, done.error(), decided.has_value()));
  }
}

// Of many messages the next ones are decided meanwhile. A few are stored sooner without the way to another thread and back.
Writer::Prepared Writer::prepare(Batch& batch) {
  const std::int64_t number = (under_way_ ? under_way_->commit.number : last_commit_) + 1;
  WriteSet& writes = batch.write(number);
  Prepared prepared{&writes, number};
  if (writes.empty()) return prepared;
  if (options_.feed) {
    Changed changed{number, changes_of(writes)};
    if (MUTANT(feed_before_commit))
      tell_feed(std::move(changed));
    else
      batch.add_effect(std::move(changed));
  }
  const bool is_worth_it = writes.rows() >= options_.beside_rows;
  prepared.goes_beside = is_worth_it && !batch.is_part() && store_.may_commit_beside(writes);
  if (prepared.goes_beside) batch.committed();  // if this one or the one before it fails, all of that is forgotten
  return prepared;
}

// What goes on beside what comes next is taken.
Result<> Writer::commit(std::unique_ptr<Batch>& batch, const Prepared& prepared) {
  if (prepared.writes->empty()) return {};
  ENSURE(prepared.number == last_commit_ + 1);
  // Whatever keeps the tables from following keeps everybody from going far ahead of them.
  if (tables_.is_far_behind(2)) {
    perform_durable();
    TRY(tables_.follow());
  }
  const Commit commit{prepared.number, clock_.now(), std::chrono::steady_clock::now()};
  if (prepared.goes_beside) return begin_commit(std::move(batch), *prepared.writes, commit), Result<>{};
  perform_durable();
  Result<> done = store_.commit(*prepared.writes, prepared.number);
  services_.times.commit += std::chrono::steady_clock::now() - commit.began;
  return ended(commit, std::move(done));
}

// First of all the store has something to do, then those hear of the commit before who wait for it.
void Writer::begin_commit(std::unique_ptr<Batch> batch, WriteSet& writes, Commit commit) {
  store_.begin_commit(std::move(writes), commit.number);
  perform_durable();
  if (batch->took_timers() && !batch->more_timers())
    next_timer_ = batch->earliest_timer();  // of the others the store is asked at its end
  else
    set_timers(*batch);
  Effects effects = batch->take_effects();
  count(*batch, effects);
  matching_.expect(effects);
  if (MUTANT(release_before_end)) perform(std::exchange(effects, {}));
  under_way_ = UnderWay{std::move(batch), std::move(effects), commit};
}

// Waits for the commit that is under way. None: it is durable, and what follows from it is in durable_, or there is none.
// Otherwise it is not, and this is to be done instead.
std::optional<Writer::Line> Writer::settle() {
  if (!under_way_) return std::nullopt;
  const auto began = std::chrono::steady_clock::now();
  UnderWay one = *std::exchange(under_way_, std::nullopt);
  Result<> outcome = store_.end_commit();
  services_.times.commit += std::chrono::steady_clock::now() - began;
  const Result<> done = ended(one.commit, std::move(outcome));
  if (!done) {
    if (one.batch->took_timers()) next_timer_ = Time{};  // they are due still
    if (!MUTANT(failed_commit_serves_polls)) matching_.withdraw(one.effects);
    return not_stored(std::move(one.batch), std::move(one.effects), done.error(), true);
  }
  if (one.batch->took_timers()) timers_were_taken(one.batch->more_timers());
  ENSURE(durable_.empty());
  durable_ = std::move(one.effects);
  if (tables_.keeps_readers_waiting()) {
    perform_durable();
    tables_.wait_for_end();
  }
  follow_when_due();  // before the next commit, which may go on as long as this one
  return std::nullopt;
}

// What is done instead of one that failed may be under way again.
void Writer::finish_commit() {
  while (under_way_) {
    auto instead = settle();
    perform_durable();
    if (instead) run_line(std::move(*instead));
  }
}

// What is known once a commit has come to its end.
Result<> Writer::ended(const Commit& commit, Result<> done) {
  const auto took = std::chrono::steady_clock::now() - commit.began;
  if (metrics_.commit_seconds) metrics_.commit_seconds->observe(took);
  if (done) {
    last_commit_ = commit.number;
    tables_.committed(commit.number);
    pause_ = Duration::zero();
    return {};
  }
  if (metrics_.commit_failures) metrics_.commit_failures->add();
  // Other programs write some of the tables too; what they changed meanwhile is looked at anew.
  if (done.error().code == Code::conflict) lost_to_others_ += clock_.now() - commit.at;
  return done;
}

void Writer::release(Batch& batch) {
  batch.committed();
  set_timers(batch);
  if (batch.took_timers()) timers_were_taken(batch.more_timers());
  Effects effects = batch.take_effects();
  count(batch, effects);
  matching_.expect(effects);
  perform(std::move(effects));
}

void Writer::set_timers(const Batch& batch) {
  if (const auto& earliest = batch.earliest_timer())
    next_timer_ = next_timer_ ? std::min(*next_timer_, *earliest) : *earliest;
}

// What is to be done instead with a batch that is not stored: again, in parts, or nothing, when its callers were told.
Writer::Line Writer::not_stored(std::unique_ptr<Batch> batch, Effects effects, const Error& error, bool was_decided) {
  Line instead;
  warn_of(effects);
  warn_of(batch->effects());
  if (was_decided && error.code == Code::unknown) {
    if (effects.empty()) effects = batch->take_effects(), count(*batch, effects);
    hold(*batch, std::move(effects), error);
    return instead;
  }
  trouble_ = error;
  forget();
  const bool collided = error.code == Code::conflict;  // with another program: nobody here is to blame
  const bool wrong = error.code == Code::invalid || error.code == Code::not_found;
  if (was_decided && collided && batch->again(clock_.now()).value_or(false))
    instead.push_back({{}, {}, std::move(batch)});
  else if ((wrong || collided) && batch->can_be_divided())
    instead = divide(*batch, error.code);
  else
    refuse(*batch, error, was_decided);
  return instead;
}

void Writer::count(const Batch& batch, Effects& effects) const {
  engine::count(effects, metrics_.batches, 1);
  engine::count(effects, metrics_.commands, batch.items_count());
  engine::count(effects, metrics_.timers, batch.timers_count());
  engine::count(effects, metrics_.handouts, batch.handouts_count());
  engine::count(effects, metrics_.postponed, batch.is_put_off() ? 1 : 0);
}

Changes Writer::changes_of(const WriteSet& writes) const {
  Changes changes;
  for (const auto& kind : kinds_) kind->tell(writes, changes);
  return changes;
}

void Writer::tell_feed(Changed changed) {
  if (!options_.feed || changed.changes.empty()) return;
  options_.feed->publish(
      {.number = changed.commit_number, .at = clock_.now(), .changes = std::move(changed.changes)});
}

// ---- what goes wrong

void Writer::hold(Batch& batch, Effects effects, const Error& error) {
  trouble_ = error;
  away_ = true;
  held_ = Held{last_commit_ + 1, std::move(effects), batch.take_items()};
  std::erase_if(held_->effects, [](const Effect& effect) {
    return (MUTANT(feed_forgets_unknown) && std::holds_alternative<Changed>(effect)) ||
           (MUTANT(held_answers_lost) && std::holds_alternative<Answer>(effect)) ||
           (MUTANT(held_waits_lost) && std::holds_alternative<Await>(effect)) ||
           (MUTANT(held_hooks_lost) && std::holds_alternative<OfKind>(effect));
  });
  forget();
}

// What is in memory may not be true: it is asked of the store again.
void Writer::forget() {
  matching_.forget_waiting();
  for (const auto& kind : kinds_) kind->forget();
}

// Into parts of equal size, timers first. Few enough that a turn with thousands of messages is not as many commits,
// and so many that one row which another program holds is waited for twice at most before its message is alone. A
// timer that cannot be obeyed even alone is put off, so that it does not spoil every batch.
Writer::Line Writer::divide(Batch& whole, Code why) {
  constexpr std::size_t parts_max = 64;
  constexpr Duration held_by_others{10'000};  // a timer's row or what it needs may soon be free
  using Which = TimerChoice::Which;
  const bool put_off = whole.is_one_timer();
  std::vector<Timer> timers = whole.take_timers();
  std::vector<Item> items = whole.take_items();
  if (put_off) {
    TimerChoice choice{.which = Which::put_off, .named = std::move(timers)};
    if (why == Code::conflict) choice.later = held_by_others;
    Line part;
    part.push_back({{}, std::move(choice), nullptr});
    return part;
  }
  const std::size_t size = (timers.size() + items.size() + parts_max - 1) / parts_max;
  Line parts;
  const auto room = [&]() -> Work& {
    if (parts.empty() || parts.back().items.size() + parts.back().timers.named.size() == size)
      parts.push_back({{}, {.which = Which::these}, nullptr});
    return parts.back();
  };
  for (Timer& timer : timers) room().timers.named.push_back(std::move(timer));
  for (Item& item : items) room().items.push_back(std::move(item));
  return parts;
}

// Nothing of the batch has happened. Its callers are told: what cannot be stored they brought, what cannot be
// decided is a row that cannot be read. Timers and waiting polls are tried again a little later: nobody is
// served by a busy loop.
void Writer::refuse(Batch& batch, const Error& error, bool was_decided) {
  if (is_final(error)) fatal_ = error;
  const bool full = error.code == Code::full;
  const bool wrong = error.code == Code::invalid || error.code == Code::not_found;
  const bool busy = error.code == Code::busy;
  away_ = !full && !wrong && !busy && error.code != Code::conflict;
  refuse(batch.take_items(),
         full          ? Refusal::store_full
         : !wrong      ? Refusal::store_unavailable
         : was_decided ? Refusal::invalid_input
                       : Refusal::row_unreadable,
         busy ? busy_message : error.message);
  pause_ = std::clamp(pause_ * 2, Duration{50}, pause_max);
  retry_at_ = clock_.now() + pause_;
}

void Writer::refuse(std::vector<Item> items, Refusal refusal, const std::string& message) {
  for (Item& item : items) {
    // A task that is given back has nobody else to remember it: it is given back later. Others do not wait for it,
    // nor do timers: another program may hold its row for long.
    const bool may_pass = refusal != Refusal::invalid_input && refusal != Refusal::row_unreadable;
    if (may_pass && std::holds_alternative<ReturnTasks>(item.command)) {
      item.received = Time{};
      given_back_.push_back(std::move(item));
      give_back_at_ = clock_.now() + Duration{2'000};
    } else {
      item.waiter->deliver(Refused{refusal, message, {}});
    }
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

// ---- tables

std::optional<Time> Writer::follow_at() const {
  return under_way_ ? std::nullopt : tables_.due();  // of a commit, its end comes first
}

void Writer::follow_when_due() {
  end_following();  // the store may have waited for it, to answer a question
  if (!away_ && !under_way_) tables_.begin_when_due();
}

void Writer::end_following() {
  const std::optional<Error> error = tables_.end();
  if (!error) return;
  if (is_final(*error)) fatal_ = *error;
  if (away_ || is_passing(*error)) return;
  trouble_ = *error;
  forget();
  away_ = true;
}

// The database has crashed, and come back, while nobody used it. open() reads how far the tables are, and follows.
void Writer::tables_are_doubted() {
  finish_commit();
  if (away_) return;
  trouble_ = {Code::unavailable, "the database has lost what the tables showed last; the journal has it"};
  forget();
  away_ = true;
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
  if (tables_.is_doubted()) return Time{};
  std::optional<Time> wake = follow_at();
  const auto also_at = [&](const std::optional<Time>& one) {
    if (one && (!wake || *one < *wake)) wake = one;
  };
  if (retry_at_) {
    also_at(after_pause(*retry_at_, clock_.now()));
    return wake;
  }
  if (!matching_.to_match().empty() || !own_items_.empty()) return Time{};
  for (const std::optional<Time>& one : {next_timer_, matching_.next_deadline(), match_all_at_, give_back_at_}) also_at(one);
  return wake;
}

void Writer::expire_while_away() {
  const Time now = clock_.now();
  matching_.time_out_polls(now);
  const std::string why = "the store is not reachable at the moment";
  refuse(matching_.take_overdue_waits(now), Refusal::store_unavailable, why);
  refuse(std::exchange(own_items_, {}), Refusal::store_unavailable, why);  // also those that a full batch put off
}

void Writer::finish() {
  finish_commit();
  matching_.end_all_polls();
  abandon_held();
  held_.reset();
  std::vector<Item> waits = matching_.take_all_waits();
  std::vector<Item> returns = take_returns();
  if (!away_) {  // apart: nobody who waits is refused because another program holds the row of a task
    run_last(std::exchange(waits, {}));
    run_last(std::exchange(returns, {}));
  }
  for (auto* left : {&waits, &returns, &own_items_, &given_back_})
    for (Item& item : std::exchange(*left, {}))
      item.waiter->deliver(Refused{Refusal::stopping, "the server is stopping", {}});
  const bool have_followed = !away_ && tables_.follow();
  if (have_followed) (void)store_.close();
  else if (options_.unreadable && store_.behind().commits > 0)
    options_.unreadable("the tables are behind as the server stops; the next start brings them up to date, from the journal");
}

// The commands that give tasks back. Nobody else remembers those tasks: each would be leased until its timeout.
std::vector<Item> Writer::take_returns() {
  std::vector<Item> returns = std::exchange(given_back_, {});
  give_back_at_.reset();
  const auto own = std::ranges::stable_partition(
      own_items_, [](const Item& item) { return !std::holds_alternative<ReturnTasks>(item.command); });
  std::ranges::move(own, std::back_inserter(returns));
  own_items_.erase(own.begin(), own.end());
  return returns;
}

// What cannot be stored is left in given_back_.
void Writer::run_last(std::vector<Item> items) {
  constexpr Duration patience{2'000};  // the stop is waited for
  if (items.empty()) return;
  retry_at_.reset();
  Line line;
  line.push_back({std::move(items), {.which = TimerChoice::Which::these}, nullptr});
  run_line(std::move(line), patience);
  abandon_held();
  held_.reset();
}

}  // namespace baton::engine
