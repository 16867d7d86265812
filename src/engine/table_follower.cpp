#include "engine/table_follower.hpp"

#include <algorithm>
#include <utility>

#include "engine/pause.hpp"

namespace baton::engine {

constexpr Duration retry_pause = pause_max / 2;  // of tables that cannot follow

TableFollower::TableFollower(Store& store, const Clock& clock, const WriterOptions& options, metrics::Histogram* seconds)
    : store_(store), clock_(clock), options_(options), seconds_(seconds) {}

void TableFollower::opened(std::int64_t last_commit) {
  last_commit_ = last_commit;
  if (options_.followed) options_.followed->opened(last_commit);
  since_.reset();
  show(last_commit, clock_.now());
}

void TableFollower::committed(std::int64_t number) {
  last_commit_ = number;
  last_commit_at_ = clock_.now();
  if (options_.followed) options_.followed->committed(number);
  look_for_readers();
  if (store_.behind().commits == 0)
    show(number, last_commit_at_);  // it was written to them
  else if (!behind_since_)
    behind_since_ = last_commit_at_;
}

bool TableFollower::is_far_behind(std::size_t times) const {
  const Behind behind = store_.behind();
  return behind.rows >= times * options_.follow_rows || behind.bytes >= times * options_.follow_bytes;
}

void TableFollower::look_for_readers() {
  if (options_.followed && options_.followed->is_wanted()) wanted_at_ = clock_.now();
}

// Now, or a moment ago. Whoever reads may come while the tables follow, and waits for that and for the following after it, so
// that both must be short then. Otherwise a long one is better: what changes twice meanwhile is written once.
bool TableFollower::has_readers() const {
  constexpr Duration readers_stay{1'000};
  const Duration since = wanted_at_ ? clock_.now() - *wanted_at_ : readers_stay;
  return since >= Duration{} && since < readers_stay;
}

std::size_t TableFollower::rows_at_once() const {
  return has_readers() ? options_.follow_rows / 8 : options_.follow_rows;
}

bool TableFollower::keeps_readers_waiting() const {
  return since_ && !since_->was_waited_for && has_readers() && store_.behind().rows >= since_->rows + rows_at_once();
}

void TableFollower::wait_for_end() {
  constexpr Duration at_most{50};
  since_->was_waited_for = true;
  store_.wait_for_following(at_most);
}

// So that they end in time, if it takes as long as it did. Not so early that each row is written for itself.
Time TableFollower::latest_begin() const {
  constexpr Duration pause_min{20};
  const Duration pause = has_readers() ? Duration{} : options_.follow_after - took_;
  return *behind_since_ + std::max(pause, std::min(pause_min, options_.follow_after));
}

// A clock that was set back must not make them wait for that time to come again.
std::optional<Time> TableFollower::due() const {
  if (!behind_since_ || since_) return std::nullopt;
  if (retry_at_) return after_pause(*retry_at_, clock_.now(), retry_pause);
  const bool is_wanted = options_.followed && options_.followed->is_wanted();
  const bool is_set_back = clock_.now() < std::max(last_commit_at_, *behind_since_);
  const bool is_enough = store_.behind().rows >= rows_at_once();
  if (is_wanted || is_enough || is_far_behind(1) || is_set_back) return Time{};
  return std::min(last_commit_at_ + options_.follow_when_quiet, latest_begin());
}

void TableFollower::begin_when_due() {
  const auto at = due();
  if (!at || clock_.now() < *at) return;
  look_for_readers();
  store_.begin_following();
  if (store_.behind().is_following)
    since_ = Began{clock_.now(), std::chrono::steady_clock::now(), store_.behind().rows};
  else  // it has followed by itself, to answer a question
    show_what_store_has(clock_.now());
}

// The tables have come to where they were when they began to follow, or could not.
std::optional<Error> TableFollower::end() {
  const auto ended = store_.end_following();
  if (!since_ || store_.behind().is_following) return std::nullopt;
  const Began began = *std::exchange(since_, std::nullopt);
  if (ended && !*ended) {
    cannot(ended->error());
    return ended->error();
  }
  if (ended) {
    took_ = std::max(clock_.now() - began.at, Duration{});  // by the clock that says when it is due
    if (seconds_) seconds_->observe(std::chrono::steady_clock::now() - began.steady);
  }
  show_what_store_has(began.at);
  return std::nullopt;
}

// What could not follow a moment ago is not waited for again: it may take long, and everybody would wait.
Result<> TableFollower::follow() {
  if (retry_at_) return std::unexpected(trouble_);
  if (Result<> done = store_.follow(); !done) {
    cannot(done.error());
    return done;
  }
  since_.reset();
  show(last_commit_, clock_.now());
  return {};
}

// They are to try it again a little later, beside what else is done.
void TableFollower::cannot(const Error& error) {
  if (is_passing(error) && !retry_at_ && options_.unreadable)
    options_.unreadable("the tables are behind, and reads are refused until they can follow: " + error.message);
  if (options_.followed) options_.followed->set_away(true);  // nobody waits for that
  trouble_ = error;
  retry_at_ = clock_.now() + retry_pause;
  if (!store_.behind().is_following) since_.reset();
}

void TableFollower::show_what_store_has(Time as_of) { show(last_commit_ - store_.behind().commits, as_of); }

void TableFollower::show(std::int64_t commit_number, Time as_of) {
  behind_since_.reset();
  if (commit_number < last_commit_) behind_since_ = as_of;
  retry_at_.reset();
  if (!options_.followed) return;
  options_.followed->followed(commit_number);
  options_.followed->set_away(false);
}

}  // namespace baton::engine
