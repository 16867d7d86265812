// What an update of a runbook's row writes: the columns that were changed since the row was loaded. Other programs
// write these rows too, and keep what they wrote to the other columns. On every adapter.
#include "tests/contract/store/runbook_fixture.hpp"

namespace baton::contract::runbook_updates_test {
namespace {

using namespace runbook;

using RunbookUpdates = RunbookStoreContract;

INSTANTIATE_TEST_SUITE_P(All, RunbookUpdates, ::testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres),
                         name_of);

// Another value that the column can hold.
void alter(bool& value) { value = !value; }
void alter(std::string& value) { value += "'"; }
void alter(Time& value) { value += std::chrono::seconds{1}; }
void alter(Json& value) { value.text = "[" + value.text + "]"; }
template <class Number>
  requires std::is_integral_v<Number>
void alter(Number& value) {
  ++value;
}
template <class Word>
  requires std::is_enum_v<Word>
void alter(Word& value) {
  value = value == Word{} ? static_cast<Word>(1) : Word{};
}
template <class T>
void alter(std::optional<T>& value) {
  if (!value) value.emplace();
  alter(*value);
}

template <class Row>
constexpr std::size_t column_count = std::tuple_size_v<decltype(store::Table<Row>::columns)>;

// By the place of the column; its name, and false for those that no update changes.
template <class Row>
std::pair<std::string_view, bool> alter_column(Row& row, std::size_t place) {
  std::pair<std::string_view, bool> altered;
  std::size_t at = 0;
  store::for_each_column<Row>([&](const auto& column) {
    if (at++ != place) return;
    altered = {column.name, column.role != store::ColumnRole::key && column.role != store::ColumnRole::outcome};
    if (altered.second) alter(row.*column.member);
  });
  return altered;
}

// All columns but the status, by which an update knows that its row is as it was.
template <class Row>
Row as_another_wrote_it(Row row) {
  for (std::size_t place = 0; place < column_count<Row>; ++place) {
    Row altered = row;
    if (alter_column(altered, place).first != "status") row = altered;
  }
  return row;
}

template <class Row>
struct Rows {
  Row (*make)(std::int64_t id);
  std::vector<Row> Writes::*fresh;
  std::vector<Update<Row>> Writes::*changes;
  std::vector<Row> runbook::Loaded::*loaded;
  Need (*by_id)(std::int64_t id);
};

template <class OfId>
Need by_id(std::int64_t id) {
  return OfId{id};
}

constexpr std::tuple all_rows{
    Rows<Runbook>{[](std::int64_t id) { return runbook_row(id, "waves" + std::to_string(id)); }, &Writes::runbooks_new,
                  &Writes::runbooks_changed, &runbook::Loaded::runbooks, by_id<need::Runbook>},
    Rows<Batch>{[](std::int64_t id) { return batch_row(id); }, &Writes::batches_new, &Writes::batches_changed,
                &runbook::Loaded::batches, by_id<need::Batch>},
    Rows<Member>{[](std::int64_t id) { return member_row(id); }, &Writes::members_new, &Writes::members_changed,
                 &runbook::Loaded::members, by_id<need::Member>},
    Rows<PhaseExecution>{[](std::int64_t id) { return phase_row(id); }, &Writes::phases_new, &Writes::phases_changed,
                         &runbook::Loaded::phases, by_id<need::Phase>},
    Rows<StepExecution>{[](std::int64_t id) { return step_row(id); }, &Writes::steps_new, &Writes::steps_changed,
                        &runbook::Loaded::steps, by_id<need::Step>},
    Rows<InitExecution>{[](std::int64_t id) { return init_row(id); }, &Writes::inits_new, &Writes::inits_changed,
                        &runbook::Loaded::inits, by_id<need::Init>},
    Rows<CleanupExecution>{[](std::int64_t id) { return cleanup_row(id); }, &Writes::cleanups_new,
                           &Writes::cleanups_changed, &runbook::Loaded::cleanups, by_id<need::Cleanup>},
    Rows<Hold>{[](std::int64_t id) { return hold_row(id); }, &Writes::holds_new, &Writes::holds_changed,
               &runbook::Loaded::holds, by_id<need::Hold>},
};

template <class F>
void for_each_table(F&& f) {
  std::apply([&](const auto&... rows) { (f(rows), ...); }, all_rows);
}

// A row for each column: another program changes all of the row, and the update that column only.
TEST_P(RunbookUpdates, EachColumnIsWrittenAloneAndTheOthersStayAsAnotherProgramWroteThem) {
  for_each_table([&]<class Row>(const Rows<Row>& rows) {
    Writes fresh, theirs, ours;
    std::vector<Row> expected;
    std::vector<Need> needs;
    for (std::size_t place = 0; place < column_count<Row>; ++place) {
      const Row before = rows.make(static_cast<std::int64_t>(place) + 1);
      Row row = before;
      if (!alter_column(row, place).second) continue;
      Row both = as_another_wrote_it(before);
      (fresh.*rows.fresh).push_back(before);
      (theirs.*rows.changes).push_back({before, both});
      (ours.*rows.changes).push_back({before, row});
      store::copy_columns(row, both, store::ColumnSet{1} << place);
      expected.push_back(both);
      needs.push_back(rows.by_id(before.id));
    }
    commit(fresh);
    commit(theirs);
    commit(ours);
    const auto stored = load(needs).*rows.loaded;
    ASSERT_EQ(stored.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(expected[i], stored[i])) << expected[i].id;
  });
}

TEST_P(RunbookUpdates, AValueIsTakenAwayWhenTheUpdateHasNoneAnyMore) {
  Writes w;
  w.members_new = {member_row(1)};
  w.steps_new = {step_row(1)};
  commit(w);
  Writes u;
  u.members_changed = {changed(member_row(1), [](auto& row) { row.data_json.reset(), row.failed_at.reset(); })};
  u.steps_changed = {changed(step_row(1), [](auto& row) { row.params_json.reset(), row.leased_by.reset(); })};
  commit(u);
  const auto l = load({need::Member{1}, need::Step{1}});
  EXPECT_TRUE(same(u.members_changed[0].row, l.members.at(0)));
  EXPECT_TRUE(same(u.steps_changed[0].row, l.steps.at(0)));
}

// Each of the guarded tables, with a row that the update believes to be in another status.
TEST_P(RunbookUpdates, OfARowInAnotherStatusTheyAreAConflictAndNothingIsWritten) {
  Writes w;
  w.steps_new = {step_row(2)};
  for_each_table([&]<class Row>(const Rows<Row>& rows) { (w.*rows.fresh).push_back(rows.make(1)); });
  commit(w);
  const auto job_changed = changed(step_row(2), [](auto& row) { row.job_id = "written"; });
  for_each_table([&]<class Row>(const Rows<Row>& rows) {
    if constexpr (requires(Row row) { row.status; }) {
      Update<Row> believed{rows.make(1), as_another_wrote_it(rows.make(1))};
      alter(believed.before.status);
      believed.row.status = believed.before.status;
      Writes attempt;
      (attempt.*rows.changes) = {believed};
      attempt.steps_changed.push_back(job_changed);
      attempt.runbooks_new = {runbook_row(2)};
      const auto done = try_commit(attempt);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
      EXPECT_TRUE(done.error().message.contains("status")) << done.error().message;
      const auto l = load({need::Step{2}, need::Runbook{2}});
      EXPECT_EQ(l.steps.at(0).job_id, "step-2");
      EXPECT_TRUE(l.runbooks.empty());
    }
  });
  Writes good;
  good.steps_changed = {job_changed};
  commit(good);  // the writer goes on with the same number
  EXPECT_EQ(load({need::Step{2}}).steps.at(0).job_id, "written");
}

TEST_P(RunbookUpdates, WithoutAChangeTouchNothing) {
  Writes w;
  w.steps_new = {step_row(1)};
  commit(w);
  Writes u;
  u.steps_changed = {{step_row(1), step_row(1)}, {step_row(7), step_row(7)}};  // 7 is gone meanwhile
  commit(u);
  EXPECT_TRUE(same(step_row(1), load({need::Step{1}}).steps.at(0)));
}

TEST_P(RunbookUpdates, OfARowThatTheSameCommitInsertsAreApplied) {
  Writes w;
  w.steps_new = {step_row(1)};
  w.steps_changed = {changed(step_row(1), [](auto& row) { row.status = StepStatus::succeeded; })};
  commit(w);
  EXPECT_EQ(load({need::Step{1}}).steps.at(0).status, StepStatus::succeeded);
}

}  // namespace
}  // namespace baton::contract::runbook_updates_test
