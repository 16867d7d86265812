// What a store with a journal is built on: a store that can append a commit to a journal instead of writing it to its
// tables, and bring the tables up to it later, beside what else it does.
#pragma once

#include <functional>
#include <memory>

#include "ports/store.hpp"

namespace baton::store {

// A commit whose rows are not in the tables yet: what it changed, as codec.hpp writes it.
struct JournalRow {
  std::int64_t commit_number = 0;
  std::int32_t format = 0;
  std::string data;
};

// The tables show the state after commit `from` and shall show that after `to`. The journal is done with up to there.
struct Following {
  const WriteSet* writes = nullptr;  // nothing of runbooks; lives until it has ended
  std::int64_t from = 0, to = 0;
};

class Tables : public Store {
 public:
  // The commit is this row; of the write set only what is about runbooks is written beside it.
  [[nodiscard]] virtual Result<> append(const JournalRow& row, const WriteSet& beside) = 0;
  // The rows of the journal that the tables do not show, in order.
  [[nodiscard]] virtual Result<std::vector<JournalRow>> journal() = 0;

  // One transaction, which need not be durable when it ends: what is lost of it is still in the journal. None may be
  // under way. Other calls may be made meanwhile; those that write may wait for it.
  virtual void begin(const Following& following) = 0;
  // How it ended, once; none: it is under way, or there was none.
  [[nodiscard]] virtual std::optional<Result<>> end() = 0;
  // Returns when none is under way.
  virtual void wait() = 0;
  virtual void wait_at_most(Duration time) { (void)time, wait(); }

  // Runs the work beside what else is done, one at a time. It may make any call of the owner's.
  using Work = std::move_only_function<Result<>()>;
  virtual void begin_work(Work work) = 0;
  [[nodiscard]] virtual bool is_working() const = 0;
  [[nodiscard]] virtual Result<> end_work() = 0;  // waits for its end

  // What is not needed any more and takes a while to take apart. It may be done by another thread.
  virtual void discard(std::shared_ptr<const void> spent) { spent.reset(); }

  // Bytes that are free where the data lies; none: it cannot tell.
  [[nodiscard]] virtual std::optional<std::uint64_t> room() { return std::nullopt; }
};

}  // namespace baton::store
