// What a look at a data source is worth.
#include "core/runbook/machine/machine_fixture.hpp"

namespace baton::runbook {
namespace {

std::string synced_book(const std::string& more = "") {
  return "name: waves\n" + more + R"(
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases: [{name: work, offset: T-0, steps: [{name: a, worker_id: pool, function: A}]}]
)";
}

class SourceData : public testing::Test {
 protected:
  SourceData() { machine_.publish(synced_book()); }
  std::optional<DataRows> rows_for(std::int64_t runbook_id, const std::vector<DataRow>& rows) {
    return machine_.decide([&](Context c) { return data_rows(runbook_id, rows, machine_.now, true, c.ledger); });
  }
  static DataRow row(const std::string& key, const std::string& data) { return {key, std::nullopt, Json{data}}; }
  std::int64_t first() const { return machine_.rows.runbooks.begin()->first; }

  MachineOnRows machine_;
};

TEST_F(SourceData, goes_to_the_table_of_the_version_with_the_columns_of_the_first_row) {
  const auto rows = rows_for(first(), {row("ada", R"({"Key":"ada","Größe":null,"Aliases":["a"]})"), row("bob", R"({"No":"1"})")});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->table, "runbook_waves_v1");
  EXPECT_EQ(rows->columns, (std::vector<std::string>{"Key", "Größe", "Aliases"}));
  ASSERT_EQ(rows->rows.size(), 2U);
  EXPECT_EQ(rows->rows.back().member_key, "bob");
  EXPECT_EQ(rows->seen_at, machine_.now);
  EXPECT_TRUE(rows->finish);
}

TEST_F(SourceData, without_rows_has_no_columns_and_still_ends_a_look) {
  const auto none = rows_for(first(), {});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->columns.empty() && none->rows.empty() && none->finish);
  EXPECT_TRUE(rows_for(first(), {row("ada", "no object")})->columns.empty());
}

TEST_F(SourceData, of_a_version_that_was_replaced_counts_for_nothing) {
  const std::int64_t replaced = first();
  machine_.publish(synced_book("description: another"));
  EXPECT_EQ(rows_for(replaced, {row("ada", "{}")}), std::nullopt);
  EXPECT_EQ(rows_for(4711, {row("ada", "{}")}), std::nullopt);
}

TEST_F(SourceData, of_a_version_without_a_table_goes_nowhere) {
  machine_.rows.runbooks.change(first(), [](Runbook& book) { book.data_table_name.clear(); });
  EXPECT_EQ(rows_for(first(), {row("ada", "{}")}), std::nullopt);
}

}  // namespace
}  // namespace baton::runbook
