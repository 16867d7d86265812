// A store whose commit is one append. What a commit changes of workflows, service calls, messages and timers goes to the
// journal, a table of the same database (sql_journal.hpp), as one row; the tables follow later, many commits in one transaction that need
// not be durable at once, beside the next commits. Tables that others write (runbooks) are written in the commit itself.
//
// A commit that has nothing for those tables may go on beside the writer, on a thread of the tables'. What the writer loads
// meanwhile is not of that commit, or waits for its end.
//
// Invariants:
//  * the tables show the state after one commit, `followed`; what came after it is in the journal and in the backlogs:
//    first that with which the tables are following, or are to try it again, then what was committed since;
//  * every question is answered from the backlogs and the tables together, or after following. It does not matter
//    whether the tables have what they are following with already;
//  * open() follows what an earlier writer, or this one, has left behind: then the backlogs are empty;
//  * there is room on the disk for the tables to follow: as it gets scarce they follow before each commit, and then
//    commits are refused;
//  * a commit that carries large documents, versions of workflows or rows that are written anew is not in the journal: it
//    follows with all that was before it. So a document is written once. Nor is one that has nothing but runbooks while the
//    tables are up to date: what it writes is written in the commit anyway;
//  * a large document of a node is in the journal when it is new, and not with each change of its row. A start brings it back from
//    the row as it was before, in the journal or in the tables.
#pragma once

#include <memory>
#include <mutex>

#include "store/journal/backlog.hpp"
#include "store/journal/known_documents.hpp"
#include "store/journal/tables.hpp"
#include "store/journal/touched_keys.hpp"

namespace baton::store {

class JournalStore final : public Store {
 public:
  // Documents of more than `large` bytes are told once.
  explicit JournalStore(std::unique_ptr<Tables> tables, std::size_t large = 16 << 10)
      : documents_(large), tables_(std::move(tables)) {}
  ~JournalStore() override { (void)wait_for_commit(); }

  Result<WriterState> open(Partition partition) override;
  Result<Loaded> load(const LoadRequest& request) override;
  // Of what others write too nothing is in a commit that goes on beside.
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override { return tables_->load(needs); }
  Result<call::Loaded> load(const call::LoadRequest& request) override;
  Result<message::Loaded> load(const message::LoadRequest& request) override;
  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override {
    return tables_->reserve_ids(table, count);
  }
  Result<> write_data(const runbook::DataRows& rows) override { return tables_->write_data(rows); }
  Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) override;
  Result<std::vector<runbook::Ref>> left_by_others(runbook::Ref after, std::size_t limit) override;
  Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit, Time now) override;
  Result<std::vector<NodeKey>> running_builtin(std::size_t limit) override;
  Result<std::vector<Timer>> timers_due(Time until, std::size_t limit) override;
  Result<std::optional<Time>> next_timer() override;
  Result<> commit(const WriteSet& writes, std::int64_t commit_number) override;
  bool may_commit_beside(const WriteSet& writes) const override;
  void begin_commit(WriteSet writes, std::int64_t commit_number) override;
  bool is_committing() const override { return beside_ && tables_->is_working(); }
  Result<> end_commit() override;
  Behind behind() const override;
  Result<> follow() override;
  void begin_following() override;
  std::optional<Result<std::int64_t>> end_following() override;
  void wait_for_following(Duration at_most) override {
    if (under_way_) tables_->wait_at_most(at_most);
  }
  Result<> close() override;
  void on_ended(std::function<void()> on_end) override { tables_->on_ended(std::move(on_end)); }
  void on_followed(std::function<void(std::int64_t)> tell) override { tables_->on_followed(std::move(tell)); }

  [[nodiscard]] Result<std::vector<JournalRow>> journal() { return tables_->journal(); }

 private:
  // A commit that goes on beside the writer. Until end_commit() everything here but this is its own; whoever loads meanwhile
  // has the mutex.
  struct Beside {
    Behind behind;  // when it began
    TouchedKeys touched;
    std::optional<Result<>> outcome;  // once it was waited for
  };
  [[nodiscard]] Result<> wait_for_commit();
  // Unless nothing of what is asked for is in it.
  template <class Request>
  [[nodiscard]] Result<> wait_for_commit_of(const Request& asked);
  [[nodiscard]] Result<> bring_unchanged(Decoded& decoded, const Backlog& before);
  [[nodiscard]] Result<> commit_rows(const WriteSet& writes, std::int64_t commit_number, WriteSet* own);
  [[nodiscard]] Result<> follow_now();
  void begin_now();
  [[nodiscard]] Result<> check_keys(const WriteSet& writes) const;
  [[nodiscard]] Behind behind_now() const;
  [[nodiscard]] Result<> leave_room();
  [[nodiscard]] Result<> commit_directly(const WriteSet& writes, std::int64_t commit_number);
  [[nodiscard]] Result<> settle(Result<> ended);
  [[nodiscard]] Result<> judge(Result<> ended);

  std::mutex backlogs_mutex_;  // by a commit that goes on beside while it changes them, and by the writer while it loads
  Backlog following_;          // up to following_to_; empty: the tables are not following
  Backlog since_;              // what was committed after that
  bool under_way_ = false;
  bool is_asked_for_ = false;  // begin_following() has begun it, and end_following() is to tell how it ended
  std::optional<Result<>> ended_;  // that, once another call has waited for it
  std::optional<Beside> beside_;
  KnownDocuments documents_;  // after the last commit
  std::int64_t last_commit_ = 0, followed_ = 0, following_to_ = 0;
  const std::unique_ptr<Tables> tables_;  // goes before the backlog that it may be reading
};

}  // namespace baton::store
