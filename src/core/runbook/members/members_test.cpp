#include "core/runbook/members/members.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <chrono>

namespace baton::runbook {
namespace {

using Cells = std::vector<Cell>;
using Errors = std::vector<std::string>;

DataSource waves() {
  DataSource source;
  source.primary_key = "Upn";
  source.batch_time_column = "Date";
  return source;
}

auto members_of(const DataSource& source, const std::vector<std::string>& columns, const std::vector<Cells>& rows,
                bool with_times) {
  return read_members(source, {.columns = columns, .rows = rows}, with_times);
}

Errors errors(const DataSource& source, const std::vector<std::string>& columns,
              const std::vector<Cells>& rows, bool with_times = true) {
  const auto members = members_of(source, columns, rows, with_times);
  return members ? Errors{"none"} : members.error();
}

TEST(Members, rows_become_members_with_key_time_and_data) {
  const auto members = members_of(waves(), {"Upn", "Date", "City"},
                                    {{"ann", "2026-03-01", "Bonn"}, {" bob ", "2026-03-02 20:30", {}}}, true);
  ASSERT_TRUE(members.has_value());
  ASSERT_EQ(members->size(), 2U);
  EXPECT_EQ(members->at(0).member_key, "ann");
  EXPECT_EQ(members->at(0).batch_time, from_iso("2026-03-01T00:00:00Z"));
  EXPECT_EQ(members->at(0).data.text, R"({"Upn":"ann","Date":"2026-03-01","City":"Bonn"})");
  EXPECT_EQ(members->at(1).member_key, "bob");
  EXPECT_EQ(members->at(1).batch_time, from_iso("2026-03-02T20:30:00Z"));
  EXPECT_EQ(members->at(1).data.text, R"({"Upn":" bob ","Date":"2026-03-02 20:30","City":null})");
}

TEST(Members, numbers_and_booleans_of_a_source_keep_their_type_but_for_keys_and_times) {
  DataSource source = waves();
  source.multi_valued_columns = {{"Sizes", MultiFormat::semicolon_delimited}};
  const auto members = members_of(
      source, {"Upn", "Date", "Seats", "Price", "Vip", "Code", "Sizes"},
      {{Cell::number("41"), "2026-03-01", Cell::number("7"), Cell::number("10.50"), Cell::boolean(true), "007", Cell::number("3")}},
      true);
  ASSERT_TRUE(members.has_value());
  EXPECT_EQ(members->front().member_key, "41");
  EXPECT_EQ(members->front().data.text,
            R"({"Upn":"41","Date":"2026-03-01","Seats":7,"Price":10.50,"Vip":true,"Code":"007","Sizes":["3"]})");
  EXPECT_EQ(errors(waves(), {"Upn", "Date"}, {{"ann", Cell::number("46082")}}),
            Errors{"row 1 ('ann'), column 'Date': '46082' is not a time; write 2026-03-01T20:00Z"});
}

TEST(Members, no_rows_are_no_members) {
  const auto members = members_of(waves(), {"Upn", "Date"}, {}, true);
  ASSERT_TRUE(members.has_value());
  EXPECT_TRUE(members->empty());
}

TEST(Members, multi_valued_columns_become_arrays) {
  DataSource source = waves();
  source.immediate = true;
  source.multi_valued_columns = {{"S", MultiFormat::semicolon_delimited},
                                 {"c", MultiFormat::comma_delimited},
                                 {"J", MultiFormat::json_array},
                                 {"Absent", MultiFormat::json_array}};
  const auto members = members_of(
      source, {"Upn", "S", "C", "J"},
      {{"ann", "a; b\"c;;", "x,y z", "[ 1.50, \"a \\\" b\", [true] ]"}, {"bob", "", {}, " "}}, true);
  ASSERT_TRUE(members.has_value());
  EXPECT_EQ(members->at(0).data.text,
            R"({"Upn":"ann","S":["a","b\"c"],"C":["x","y z"],"J":[1.50,"a \" b",[true]]})");
  EXPECT_EQ(members->at(1).data.text, R"({"Upn":"bob","S":[],"C":[],"J":[]})");
  EXPECT_FALSE(members->at(0).batch_time.has_value());
}

TEST(Members, a_json_array_that_is_none_is_wrong) {
  DataSource source = waves();
  source.multi_valued_columns = {{"J", MultiFormat::json_array}};
  EXPECT_EQ(
      errors(source, {"Upn", "Date", "J"},
             {{"ann", "2026-03-01", "{}"}, {"bob", "2026-03-01", "[1"}, {"eve", "2026-03-01", "[] []"}}),
      (Errors{"row 1 ('ann'), column 'J': not a JSON array", "row 2 ('bob'), column 'J': not a JSON array",
              "row 3 ('eve'), column 'J': not a JSON array"}));
}

TEST(Members, missing_columns_are_told_with_a_hint) {
  EXPECT_EQ(errors(waves(), {"Upm", "Town"}, {{"ann", "Bonn"}}),
            (Errors{"column 'Upn' (primary_key): the source has no such column; did you mean 'Upm'?",
                    "column 'Date' (batch_time_column): the source has no such column; it has Upm, Town"}));
  EXPECT_EQ(errors(waves(), {"upn", "DATE"}, {}), Errors{"none"}) << "databases fold the case of names";
  EXPECT_EQ(errors(waves(), {"Upn", "Date", "x", "X"}, {}), Errors{"column 'X': the source has it twice"});
}

TEST(Members, all_wrong_rows_are_told_at_once) {
  EXPECT_EQ(errors(waves(), {"Upn", "Date"},
                   {{"ann", "2026-03-01"},
                    {{}, "2026-03-01"},
                    {" ", "soon"},
                    {"ann", {}},
                    {"bob"},
                    {"eve", "2026-03-01", "x"}}),
            (Errors{"row 2, column 'Upn': the key is missing", "row 3, column 'Upn': the key is missing",
                    "row 3, column 'Date': 'soon' is not a time; write 2026-03-01T20:00Z",
                    "row 4 ('ann'), column 'Upn': the key is that of row 1 already",
                    "row 4 ('ann'), column 'Date': the time is missing", "row 5: 1 cell, but 2 columns",
                    "row 6: 3 cells, but 2 columns"}));
  EXPECT_EQ(errors(waves(), {"Upn", "Date"}, std::vector<Cells>(1000, Cells{"", "2026-03-01"})).size(), 100U);
}

TEST(Members, rows_of_a_file_are_named_by_their_lines) {
  const SourceTable table{.columns = {"Upn", "Date"},
                          .rows = {{"ann", "2026-03-01"}, {"bob", "soon"}, {"ann", "2026-03-01"}, {"eve"}},
                          .lines = {3, 4, 7, 9}};
  EXPECT_EQ(read_members(waves(), table, true).error(),
            (Errors{"line 4 ('bob'), column 'Date': 'soon' is not a time; write 2026-03-01T20:00Z",
                    "line 7 ('ann'), column 'Upn': the key is that of line 3 already",
                    "line 9: 1 cell, but 2 columns"}));
}

TEST(Members, manual_batches_need_no_times) {
  const auto members = members_of(waves(), {"Upn", "Date"}, {{"ann", "soon"}}, false);
  ASSERT_TRUE(members.has_value());
  EXPECT_FALSE(members->front().batch_time.has_value());
  EXPECT_EQ(errors(waves(), {"Upn"}, {{"ann"}}, false), Errors{"none"});
}

TEST(Members, times_are_read_as_people_write_them) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"2026-03-01", "2026-03-01T00:00:00Z"},
           {"2026-03-01T20:15", "2026-03-01T20:15:00Z"},
           {"2026-03-01 20:15", "2026-03-01T20:15:00Z"},
           {"2026-03-01T20:15Z", "2026-03-01T20:15:00Z"},
           {"2026-03-01T20:15+02:00", "2026-03-01T18:15:00Z"},
           {"2026-03-01T20:15:30", "2026-03-01T20:15:30Z"},
           {"2026-03-01T20:15:30.25", "2026-03-01T20:15:30.250Z"},
           {"2026-03-01 20:15:30.1234567 -05:00", "2026-03-02T01:15:30.123Z"},
           {"2026-03-01 20:15:30+00", "2026-03-01T20:15:30Z"},
           {"  2026-03-01T20:15:30Z ", "2026-03-01T20:15:30Z"}})
    EXPECT_EQ(parse_batch_time(text), from_iso(expected)) << text;
}

TEST(Members, what_is_no_time_is_refused) {
  for (const std::string_view text : {"",
                                      " ",
                                      "soon",
                                      "2026",
                                      "2026-3-1",
                                      "2026-02-30",
                                      "2026-03-01T",
                                      "2026-03-01T24:00",
                                      "2026-03-01T20",
                                      "2026-03-01T20:15 CET",
                                      "2026-03-01T20:15:",
                                      "2026-03-01T20:15:30.",
                                      "31/12/2026",
                                      "3/1/2026",  // March or January, depending on who reads it
                                      "3/1/26",
                                      "3/1/2026 8",
                                      "3/1/2026 13:00 PM",
                                      "3/1/2026 0:00 AM",
                                      "3/1/2026 8:60",
                                      "3/1/2026x",
                                      "3/1/2026 8:00 Z",
                                      "2/29/2026",
                                      "3/1/1969",
                                      "1/1/10000",
                                      "46082",
                                      "2026-03-01T20:15:30:00"})
    EXPECT_FALSE(parse_batch_time(text).has_value()) << text;
}

RC_GTEST_PROP(Members, what_iso_writes_is_read_back, ()) {
  const Time time = from_millis(*rc::gen::inRange<std::int64_t>(0, 253402300799999));
  RC_ASSERT(parse_batch_time(to_iso(time)) == time);
}

RC_GTEST_PROP(Members, any_text_is_a_time_or_none, (const std::string& text)) {
  (void)parse_batch_time(text);
  (void)parse_batch_time("3/1/2026 " + text);
  (void)parse_batch_time("2026-03-01T20:00" + text);
}

RC_GTEST_PROP(Members, data_is_a_json_object_with_every_column, ()) {
  const auto cell = rc::gen::maybe(rc::gen::string<std::string>());
  const auto rows =
      *rc::gen::container<std::vector<std::pair<std::optional<std::string>, std::optional<std::string>>>>(
          rc::gen::pair(
              rc::gen::map(
                  cell, [](const rc::Maybe<std::string>& m) { return m ? std::optional(*m) : std::nullopt; }),
              rc::gen::map(cell, [](const rc::Maybe<std::string>& m) {
                return m ? std::optional(*m) : std::nullopt;
              })));
  DataSource source = waves();
  source.immediate = true;
  source.multi_valued_columns = {{"b\"", MultiFormat::semicolon_delimited}};
  std::vector<Cells> table;
  for (std::size_t i = 0; i < rows.size(); ++i)
    table.push_back({fmt::format("key{}", i), rows[i].first ? Cell(*rows[i].first) : Cell(),
                     rows[i].second ? Cell(*rows[i].second) : Cell()});
  const auto members = members_of(source, {"Upn", "a", "b\""}, table, true);
  RC_ASSERT(members.has_value());
  for (const SourceMember& member : *members) {
    const auto data = boost::json::parse(member.data.text).as_object();
    RC_ASSERT(data.size() == 3U);
    RC_ASSERT(data.at("b\"").is_array());
    RC_ASSERT(data.at("Upn").as_string() == member.member_key);
  }
}

TEST(Members, a_hash_is_never_zero_and_differs_where_data_does) {
  EXPECT_NE(hash_data(""), 0U);
  EXPECT_EQ(hash_data(R"({"a":1})"), hash_data(R"({"a":1})"));
  EXPECT_NE(hash_data(R"({"a":1})"), hash_data(R"({"a":2})"));
}

TEST(Members, an_immediate_batch_is_of_the_five_minutes_that_have_begun) {
  EXPECT_EQ(to_iso(immediate_time(*from_iso("2026-03-01T20:04:59.999Z"))), "2026-03-01T20:00:00.000Z");
  EXPECT_EQ(to_iso(immediate_time(*from_iso("2026-03-01T20:05:00Z"))), "2026-03-01T20:05:00.000Z");
}

TEST(Members, a_hundred_thousand_rows_are_read_quickly) {
  std::vector<Cells> rows;
  for (int i = 0; i < 100'000; ++i)
    rows.push_back({fmt::format("user{}@contoso.example", i), "2026-03-01T20:00Z", "Bonn", "a;b;c"});
  DataSource source = waves();
  source.multi_valued_columns = {{"Aliases", MultiFormat::semicolon_delimited}};
  const auto begin = std::chrono::steady_clock::now();
  const auto members = members_of(source, {"Upn", "Date", "City", "Aliases"}, rows, true);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
  ASSERT_TRUE(members.has_value());
  EXPECT_EQ(members->size(), 100'000U);
}

TEST(Members, a_row_of_the_data_table_has_its_lists_again) {
  DataSource source;
  source.multi_valued_columns = {{"Aliases", MultiFormat::semicolon_delimited},
                                 {"Groups", MultiFormat::comma_delimited},
                                 {"Sizes", MultiFormat::json_array}};
  const auto lists = [&](std::string text) { return with_lists(source, Json{std::move(text)}).text; };
  // As another scheduler writes them, and as ours does.
  EXPECT_EQ(lists(R"({"Upn":"a;b","aliases":"x; y","Groups":"g,h","Sizes":"[1.0, 2]"})"),
            R"({"Upn":"a;b","aliases":["x","y"],"Groups":["g","h"],"Sizes":[1.0,2]})");
  EXPECT_EQ(lists(R"({"Aliases":"[\"x\",\"y\"]","Groups":null,"Sizes":"none"})"),
            R"({"Aliases":["x","y"],"Groups":[],"Sizes":"none"})");
  EXPECT_EQ(lists("nonsense"), "nonsense");
}

}  // namespace
}  // namespace baton::runbook
