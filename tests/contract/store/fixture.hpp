// What the contract runs on: an empty database of each kind, and rows with every column filled.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "ports/reads.hpp"
#include "ports/store.hpp"
#include "store/memory/reads.hpp"
#include "store/memory/store.hpp"

namespace baton::contract {

// The last three have a journal, whose tables follow only when a question needs them.
enum class StoreType { memory, sqlite, postgres, memory_journal, sqlite_journal, postgres_journal };

inline auto every_store() {
  return ::testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres, StoreType::memory_journal, StoreType::sqlite_journal,
                           StoreType::postgres_journal);
}

std::string name_of(const ::testing::TestParamInfo<StoreType>& info);

inline constexpr Partition partition{0};

// Each test has a database of its own.
class Database {
 public:
  explicit Database(StoreType type);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] std::unique_ptr<Store> store();
  [[nodiscard]] Result<std::unique_ptr<Reads>> reads();
  [[nodiscard]] Result<std::unique_ptr<TokenAdmin>> token_admin();
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] std::string path() const { return directory_ / "store.db"; }  // of the SQLite file
  void execute(const std::string& sql) const;  // beside all adapters, of which this one has SQL
  [[nodiscard]] std::vector<std::string> ask(const std::string& sql) const;  // the first column of each row; NULL is "NULL"
  void execute_in_log(const std::string& sql) const;  // where commits of workflows are until the tables follow
  [[nodiscard]] store::MemoryDatabase& memory() { return memory_; }
  [[nodiscard]] StoreType type() const { return type_; }
  void take_term();           // as another writer would
  void lose_rows_of_calls();  // their events stay

 private:
  StoreType type_;  // of the tables
  bool has_journal_;
  std::filesystem::path directory_;
  std::string url_;
  store::MemoryDatabase memory_;
};

// A store that is open, with its commits in order.
class StoreContract : public ::testing::TestWithParam<StoreType> {
 protected:
  void SetUp() override {
    store = database.store();
    const auto state = store->open(partition);
    ASSERT_TRUE(state) << state.error().message;
    first = *state;
  }

  void commit(const WriteSet& writes) {
    const auto done = store->commit(writes, ++number);
    ASSERT_TRUE(done) << done.error().message;
  }

  Loaded load(const LoadRequest& request) {
    auto loaded = store->load(request);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? std::move(*loaded) : Loaded{};
  }

  Database database{GetParam()};
  std::unique_ptr<Store> store;
  WriterState first;
  std::int64_t number = 0;
};

// With rows that differ by `n`; ids grow with it.
workflow::JobId job_id(int n);
workflow::Job job(int n);
workflow::NodeState node(int n, const std::string& node_id);
workflow::NodeState child(int n, const std::string& fan_out, std::int32_t item);
workflow::TaskResult task_result(int n);
workflow::Event event(int n, std::int64_t event_id);
Time at(std::int64_t millis);                            // after the start of the test's time
Timer node_timer(Time due, int job, const std::string& node_id);
Timer runbook_timer(Time due, runbook::RowType type, std::int64_t id);
LoadRequest for_jobs(std::vector<workflow::JobId> ids);  // with their documents

// Compares all columns and names the first that differs.
template <class Row>
::testing::AssertionResult same(const Row& expected, const Row& actual);

}  // namespace baton::contract

#include "store/tables.hpp"

template <class Row>
::testing::AssertionResult baton::contract::same(const Row& expected, const Row& actual) {
  std::string different;
  store::for_each_column<Row>([&](const auto& column) {
    if (different.empty() && !(expected.*column.member == actual.*column.member)) different = column.name;
  });
  if (different.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "column " << different << " differs";
}
