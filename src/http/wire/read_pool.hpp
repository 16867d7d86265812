// A few threads that read for the API, each with a connection of its own, so that neither the I/O thread nor
// the writer waits for a query. A read that must wait until the tables show what was committed is parked meanwhile, and
// keeps no thread: other reads and computing go on.
//
// run() is thread-safe and never blocks. A connection that breaks is opened anew, and the read that noticed
// it is tried once more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "ports/followed.hpp"
#include "ports/reads.hpp"

namespace baton::http {

using ReadsFactory = std::function<Result<std::unique_ptr<Reads>>()>;

class ReadPool {
 public:
  // With `followed`, a read of what was committed sees all of it that was there before the call.
  ReadPool(ReadsFactory open, unsigned threads, Followed* followed = nullptr, std::size_t waiting_max = 4096);
  ~ReadPool();  // finishes what waits, and refuses what is parked
  ReadPool(const ReadPool&) = delete;
  ReadPool& operator=(const ReadPool&) = delete;

  // What is read: what the engine commits, or rows that somebody else writes, for which nobody waits.
  enum class Of { commits, others };

  // fn: Reads& -> Result<T>; on_done: Result<T> -> void, on a thread of the pool (or on the caller's, when
  // too many wait).
  template <class Fn, class Done>
  void run(Fn fn, Done on_done, Of of = Of::commits) {
    using R = std::invoke_result_t<Fn&, Reads&>;
    push([fn = std::move(fn), on_done = std::move(on_done)](Result<Reads*> reads, bool last) mutable {
      R result = reads ? fn(**reads) : R(std::unexpected(reads.error()));
      const bool broken =
          !result && (result.error().code == Code::unavailable || result.error().code == Code::unknown);
      if (broken && !last) return false;
      on_done(std::move(result));
      return !broken;
    }, of);
  }

  // Work that needs a thread but no connection.
  void compute(std::move_only_function<void()> work);

 private:
  // Answers whether the connection is sound; when it is not and this was not the last try, the job is called
  // again.
  using Job = std::move_only_function<bool(Result<Reads*>, bool last)>;
  struct Item {
    Job read;  // one of the two
    std::move_only_function<void()> work;
    std::optional<Error> refused;  // there is nothing to read for it
  };
  struct Parked {
    Item item;
    std::int64_t wanted = 0;  // the commit that the tables must show
    std::chrono::steady_clock::time_point until;
  };
  void push(Job job, Of of);
  void park(Item item, std::int64_t wanted);
  bool park_in_doubt(Item& item);
  void go_on();
  void unpark();
  void work();
  void perform(Item& item, std::unique_ptr<Reads>& connection);

  ReadsFactory open_;
  Followed* const followed_;
  const std::size_t waiting_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> waiting_;
  std::deque<Parked> parked_;  // in the order of what they want, and of their time
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace baton::http
