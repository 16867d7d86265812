#include "http/wire/read_pool.hpp"

#include <exception>
#include <string>

namespace baton::http {

ReadPool::ReadPool(ReadsFactory open, unsigned threads, Followed* followed, std::size_t waiting_max)
    : open_(std::move(open)), followed_(followed), waiting_max_(waiting_max) {
  for (unsigned i = 0; i < (threads == 0 ? 1 : threads); ++i) threads_.emplace_back([this] { work(); });
}

ReadPool::~ReadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ReadPool::push(Job job, Of of) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < waiting_max_) {
      waiting_.push_back({std::move(job), {}, of});
      wake_.notify_one();
      return;
    }
  }
  job(fail(Code::unavailable, "too many reads are waiting"), true);
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
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Item item = std::move(waiting_.front());
    waiting_.pop_front();
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
  const bool waits = followed_ && item.of == Of::commits;
  if (const Result<> shown = waits ? followed_->wait() : Result<>{}; !shown) {
    job(std::unexpected(shown.error()), true);
    return;
  }
  const bool was_open = connection != nullptr;
  for (const bool last : {!was_open, true}) {
    if (!connection) {
      auto opened = open_();
      if (!opened) {
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
