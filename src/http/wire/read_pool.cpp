#include "http/wire/read_pool.hpp"

#include <exception>
#include <string>

namespace baton::http {

namespace {
constexpr std::chrono::seconds patience{5};  // of a read that is parked
Error is_behind() { return {Code::unavailable, "the store is behind with its tables; try again"}; }
}  // namespace

ReadPool::ReadPool(ReadsFactory open, unsigned threads, Followed* followed, std::size_t waiting_max)
    : open_(std::move(open)), followed_(followed), waiting_max_(waiting_max) {
  if (followed_) followed_->on_moved([this] { go_on(); });
  for (unsigned i = 0; i < (threads == 0 ? 1 : threads); ++i) threads_.emplace_back([this] { work(); });
}

ReadPool::~ReadPool() {
  if (followed_) followed_->on_moved(nullptr);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    unpark();
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ReadPool::push(Job job, Of of) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + parked_.size() < waiting_max_) {
      Item item{std::move(job), {}, {}};
      // Under the mutex: what is shown after this look finds the read where it is parked.
      if (const auto wanted = followed_ && of == Of::commits ? followed_->want() : std::nullopt)
        park(std::move(item), *wanted);
      else
        waiting_.push_back(std::move(item));
      wake_.notify_one();
      return;
    }
  }
  job(fail(Code::unavailable, "too many reads are waiting"), true);
}

// Under the mutex.
void ReadPool::park(Item item, std::int64_t wanted) {
  parked_.push_back({std::move(item), wanted, std::chrono::steady_clock::now() + patience});
  if (followed_->is_away() || stopping_) unpark();
}

// Whoever opens a connection may find that the tables have lost what they showed; they are to show it again soon.
bool ReadPool::park_in_doubt(Item& item) {
  if (!followed_ || !followed_->is_doubted()) return false;
  const std::lock_guard lock(mutex_);
  const auto wanted = followed_->want();
  if (wanted)
    park(std::move(item), *wanted);
  else
    waiting_.push_back(std::move(item));  // they do by now
  wake_.notify_one();
  return true;
}

void ReadPool::go_on() {
  const std::lock_guard lock(mutex_);
  if (parked_.empty()) return;
  unpark();
  wake_.notify_all();
}

// Under the mutex: those go on that can, or have no more reason to wait.
void ReadPool::unpark() {
  const auto now = std::chrono::steady_clock::now();
  while (!parked_.empty()) {
    Parked& first = parked_.front();
    const bool shown = followed_->shows(first.wanted);
    if (!shown && !followed_->is_away() && !stopping_ && now < first.until) return;
    if (!shown) first.item.refused = is_behind();
    waiting_.push_back(std::move(first.item));
    parked_.pop_front();
  }
}

void ReadPool::compute(std::move_only_function<void()> work) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({{}, std::move(work), {}});
  wake_.notify_one();
}

void ReadPool::work() {
  std::unique_ptr<Reads> connection;
  while (true) {
    std::unique_lock lock(mutex_);
    while (waiting_.empty() && !stopping_) {
      if (parked_.empty()) {
        wake_.wait(lock);
        continue;
      }
      const auto until = parked_.front().until;  // it may be gone when the wait looks at it again
      if (wake_.wait_until(lock, until) == std::cv_status::timeout) unpark();
    }
    if (waiting_.empty()) return;
    Item item = std::move(waiting_.front());
    waiting_.pop_front();
    if (!parked_.empty()) wake_.notify_one();  // somebody else looks after their time meanwhile
    lock.unlock();
    if (item.read) {
      perform(item, connection);
    } else {
      item.work();
    }
  }
}

void ReadPool::perform(Item& item, std::unique_ptr<Reads>& connection) {
  Job& job = item.read;
  if (item.refused) {
    job(std::unexpected(*item.refused), true);
    return;
  }
  const bool was_open = connection != nullptr;
  for (const bool last : {!was_open, true}) {
    if (!connection) {
      auto opened = open_();
      if (!opened) {
        if (park_in_doubt(item)) return;
        job(std::unexpected(opened.error()), true);
        return;
      }
      connection = *std::move(opened);
    }
    if (job(connection.get(), last)) return;
    connection.reset();
    if (last) return;
  }
}

}  // namespace baton::http
