// The tables that hold what data sources said, on every adapter; and what only a database can show of them.
#include <algorithm>
#include <boost/json.hpp>

#include "store/data_columns.hpp"
#include "tests/contract/store/runbook_fixture.hpp"

namespace baton::contract::runbook_data_test {
namespace {

using namespace runbook;

class RunbookData : public RunbookStoreContract {
 protected:
  void write(const DataRows& rows) {
    const auto done = store->write_data(rows);
    ASSERT_TRUE(done) << done.error().message;
  }

  // As an object; null: there is no such row.
  boost::json::value found(const std::string& name, const std::string& key) {
    const auto l = load({need::DataRow{name, key}});
    if (l.data_rows.empty()) return {};
    EXPECT_EQ(l.data_rows.size(), 1u);
    EXPECT_EQ(l.data_rows[0].table, name);
    EXPECT_EQ(l.data_rows[0].member_key, key);
    return boost::json::parse(l.data_rows[0].data.text);
  }

  static DataRow row(const std::string& key, std::string data) { return {key, at(7), Json{std::move(data)}}; }
  const std::string table = "runbook_waves_v1";
};

// Also without a table, and without columns.
INSTANTIATE_TEST_SUITE_P(All, RunbookData, ::testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres),
                         name_of);

TEST_P(RunbookData, ARowIsFoundByItsKeyWithTextNullsAndArraysAsTheirJson) {
  write({.table = table,
         .columns = {"Upn", "Size", "Aliases"},
         .rows = {row("a", R"({"Upn":"a@x","Size":null,"Aliases":["1","2"]})"),
                  row("b", R"({"Upn":"it's \"b\" €","Size":"5","Aliases":[]})")},
         .seen_at = at(100)});
  EXPECT_EQ(found(table, "a"),
            (boost::json::object{{"Upn", "a@x"}, {"Size", nullptr}, {"Aliases", R"(["1","2"])"}}));
  EXPECT_EQ(found(table, "b"),
            (boost::json::object{{"Upn", "it's \"b\" €"}, {"Size", "5"}, {"Aliases", "[]"}}));
  EXPECT_TRUE(found(table, "c").is_null());
  EXPECT_TRUE(found("runbook_none_v1", "a").is_null());
  const auto both = load({need::DataRow{table, "a"},
                          need::DataRow{table, "b"},
                          need::DataRow{table, "a"},
                          need::DataRow{"runbook_none_v1", "a"},
                          need::Batch{1}});
  EXPECT_EQ(both.data_rows.size(), 2u);
}

TEST_P(RunbookData, AKeyIsLookedUpAsItIsThenWithoutRegardToCase) {
  write({.table = table,
         .columns = {"A"},
         .rows = {row("Ada@x", R"({"A":"1"})"), row("bob@x", R"({"A":"2"})"), row("BOB@x", R"({"A":"3"})")},
         .seen_at = at(100)});
  EXPECT_EQ(found(table, "ada@X").at("A"), "1");
  EXPECT_EQ(found(table, "bob@x").at("A"), "2");
  EXPECT_EQ(found(table, "BOB@x").at("A"), "3");
  EXPECT_FALSE(found(table, "Bob@x").is_null());
  EXPECT_TRUE(found(table, "ada").is_null());
  const auto mixed = load({need::DataRow{table, "ADA@x"}, need::DataRow{table, "ada@x"}, need::DataRow{table, "none"}});
  EXPECT_EQ(mixed.data_rows.size(), 2u);
  // One who is not current any more does not count.
  write({.table = table, .columns = {"A"}, .rows = {row("ADA@X", R"({"A":"4"})")}, .seen_at = at(200), .finish = true});
  EXPECT_EQ(found(table, "Ada@x").at("A"), "4");
  EXPECT_TRUE(found(table, "bob@x").is_null());
}

TEST_P(RunbookData, ARowIsReplacedAndThoseNoLongerSeenAreNotCurrent) {
  write({.table = table,
         .columns = {"A"},
         .rows = {row("x", R"({"A":"1"})"), row("y", R"({"A":"1"})")},
         .seen_at = at(100),
         .finish = true});
  write({.table = table, .columns = {"A"}, .rows = {row("x", R"({"A":"2"})")}, .seen_at = at(200)});
  EXPECT_EQ(found(table, "x").at("A"), "2");
  EXPECT_EQ(found(table, "y").at("A"), "1");  // the round is not finished
  write({.table = table,
         .columns = {"A"},
         .rows = {row("z", R"({"A":"3"})")},
         .seen_at = at(200),
         .finish = true});
  EXPECT_EQ(found(table, "x").at("A"), "2");
  EXPECT_TRUE(found(table, "y").is_null());
  EXPECT_EQ(found(table, "z").at("A"), "3");
  write({.table = table, .columns = {"A"}, .rows = {row("y", R"({"A":"4"})")}, .seen_at = at(300)});
  EXPECT_EQ(found(table, "y").at("A"), "4");  // it came back
}

TEST_P(RunbookData, OfTheSameKeyTwiceTheLastCounts) {
  write({.table = table,
         .columns = {"A"},
         .rows = {row("x", R"({"A":"1"})"), row("x", R"({"A":"2"})")},
         .seen_at = at(100)});
  EXPECT_EQ(found(table, "x").at("A"), "2");
}

TEST_P(RunbookData, NoRowsOnlyFinishTheRound) {
  write({.table = table, .columns = {"A"}, .rows = {row("x", R"({"A":"1"})")}, .seen_at = at(100)});
  write({.table = table, .columns = {"A"}, .rows = {}, .seen_at = at(100), .finish = true});
  EXPECT_FALSE(found(table, "x").is_null());
  write({.table = table, .columns = {}, .rows = {}, .seen_at = at(101), .finish = true});
  EXPECT_TRUE(found(table, "x").is_null());
}

TEST_P(RunbookData, ThousandsOfRowsArrive) {
  DataRows rows{.table = table, .columns = {"A", "B"}, .rows = {}, .seen_at = at(1)};
  for (int i = 0; i < 5000; ++i)
    rows.rows.push_back(row("k" + std::to_string(i), R"({"A":")" + std::to_string(i) + R"(","B":null})"));
  write(rows);
  write(rows);
  std::vector<Need> needs;
  for (int i = 0; i < 5000; i += 10)
    needs.push_back(need::DataRow{table, "k" + std::to_string(i)});
  EXPECT_EQ(load(needs).data_rows.size(), 500u);
}

class SqlRunbookData : public RunbookData {};
INSTANTIATE_TEST_SUITE_P(All, SqlRunbookData, ::testing::Values(StoreType::sqlite, StoreType::postgres), name_of);

TEST_P(RunbookData, ColumnsMayBeNamedAsPeopleNameThem) {
  const std::string names[] = {"plain",
                               "With Blank",
                               "it's \"quoted\"",
                               "a\\b?c",
                               "drop table x;--",
                               "größe €",
                               "{text}",
                               "select",
                               "1st",
                               "Active?",
                               "?1",
                               "$1",
                               "_member_key",
                               "_ROW_ID",
                               std::string(80, 'l') + "1",
                               std::string(80, 'l') + "2"};
  DataRows rows{.table = table, .columns = {}, .rows = {}, .seen_at = at(1)};
  boost::json::object data;
  for (const std::string& name : names) {
    rows.columns.push_back(name);
    data[name] = "value of " + name;
  }
  rows.rows = {row("k", boost::json::serialize(data))};
  write(rows);
  write(rows);
  const auto l = found(table, "k").as_object();
  EXPECT_EQ(l.size(), std::size(names));
  const auto stored = store::data_column_names(rows.columns);
  for (std::size_t i = 0; i < std::size(names); ++i) {
    ASSERT_TRUE(l.contains(stored[i])) << stored[i];
    EXPECT_EQ(l.at(stored[i]), boost::json::value("value of " + names[i]));
    if (i < 12) {
      EXPECT_EQ(stored[i], names[i]);
    }
  }
}

TEST_P(RunbookData, ColumnsThatAppearAreAddedAndThoseThatVanishAreEmptied) {
  write({.table = table,
         .columns = {"A", "B"},
         .rows = {row("x", R"({"A":"1","B":"1"})"), row("y", R"({"A":"1","B":"1"})")},
         .seen_at = at(1)});
  write(
      {.table = table, .columns = {"A", "C"}, .rows = {row("x", R"({"A":"2","C":"2"})")}, .seen_at = at(2)});
  EXPECT_EQ(found(table, "x"), (boost::json::object{{"A", "2"}, {"B", nullptr}, {"C", "2"}}));
  EXPECT_EQ(found(table, "y"), (boost::json::object{{"A", "1"}, {"B", "1"}, {"C", nullptr}}));
}

TEST_P(RunbookData, AColumnThatIsSpeltOtherwiseIsStillWritten) {
  write({.table = table, .columns = {"Name"}, .rows = {row("x", R"({"Name":"1"})")}, .seen_at = at(1)});
  write({.table = table, .columns = {"name"}, .rows = {row("x", R"({"name":"2"})")}, .seen_at = at(2)});
  const auto l = found(table, "x").as_object();
  EXPECT_EQ(l.contains("name") ? l.at("name") : l.at("Name"), "2");
}

TEST_P(SqlRunbookData, TheTableIsTheOneThatTheContractNames) {
  write({.table = table, .columns = {"A"}, .rows = {row("x", R"({"A":"1"})")}, .seen_at = at(1)});
  database.execute(
      "INSERT INTO runbook_waves_v1(_member_key, _batch_time, _first_seen_at, _last_seen_at, _is_current, "
      "\"A\")"
      " VALUES ('theirs', '2025-03-15 00:00:00', '2025-03-15 00:00:00', '2025-03-15 00:00:00', '1', 'z')");
  EXPECT_EQ(found(table, "theirs").at("A"), "z");
  database.execute("UPDATE runbook_waves_v1 SET _is_current='0' WHERE _row_id=1");
  EXPECT_TRUE(found(table, "x").is_null());
}

TEST_P(SqlRunbookData, ATableThatAnotherSchedulerMadeIsRead) {
  database.execute(
      "CREATE TABLE \"runbook_Theirs v2\" (_row_id integer, _member_key varchar(256), _is_current integer, "
      "\"Upn\" "
      "varchar(10), size integer);"
      "INSERT INTO \"runbook_Theirs v2\" VALUES (1,'a',0,'old',1),(2,'a',1,'new',2)");
  EXPECT_EQ(found("runbook_Theirs v2", "a"), (boost::json::object{{"Upn", "new"}, {"size", "2"}}));
  EXPECT_TRUE(found("batches", "a").is_null());
}

TEST_P(RunbookData, OtherTablesAreNotWritten) {
  for (const char* name :
       {"batches", "baton_timers", "runbook_x\"; DROP TABLE batches;--", "runbook_X", "", "runbook_a b"}) {
    const auto done = store->write_data({.table = name, .columns = {"A"}, .rows = {}, .seen_at = at(1)});
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code, Code::invalid);
  }
}

TEST_P(RunbookData, LongNamesOfTablesKeepTheirVersionsApart) {
  const std::string name = "runbook_" + std::string(70, 'n');
  for (const char* version : {"1", "2"})
    write({.table = name + "_v" + version,
           .columns = {"A"},
           .rows = {row("x", std::string(R"({"A":")") + version + "\"}")},
           .seen_at = at(1)});
  EXPECT_EQ(found(name + "_v1", "x").at("A"), "1");
  EXPECT_EQ(found(name + "_v2", "x").at("A"), "2");
}

TEST(DataColumnNames, AreUniqueShortAndTheSameEachTime) {
  const std::string long_name(200, 'x');
  const std::vector<std::string> columns = {
      "a",
      "A",
      "b",
      "",
      "_is_current",
      long_name,
      long_name + "y",
      std::string(31, 'x') + std::string("\xe2\x82\xac") + std::string(40, 'x')};
  const auto names = store::data_column_names(columns);
  EXPECT_EQ(names, store::data_column_names(columns));
  std::vector<std::string> sorted = names;
  for (std::string& name : sorted) {
    EXPECT_LE(name.size(), 63u);
    EXPECT_TRUE(is_utf8(name));
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  }
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());
  EXPECT_EQ(names[2], "b");
  const auto turned = store::data_column_names({"A", "a"});  // whatever their order
  EXPECT_EQ(turned[0], names[1]);
  EXPECT_EQ(turned[1], names[0]);
}

}  // namespace
}  // namespace baton::contract::runbook_data_test
