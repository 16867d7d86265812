#include "base/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>

#include "base/json.hpp"

namespace baton::csv {
namespace {

using Row = std::vector<std::string>;

Table table(std::string_view text) {
  auto read_table = read(text);
  if (read_table) return *std::move(read_table);
  ADD_FAILURE() << fmt::format("{}", fmt::join(read_table.error(), "\n"));
  return {};
}

Errors errors(std::string_view text, const Limits& limits = {}) {
  const auto read_table = read(text, limits);
  return read_table ? Errors{"none"} : read_table.error();
}

using namespace std::string_literals;

TEST(Csv, reads_a_table_with_a_header) {
  const Table people = table("Name,City\nAnn,Bonn\nBob,Rome\n");
  EXPECT_EQ(people.separator, ',');
  EXPECT_EQ(people.columns, (Row{"Name", "City"}));
  EXPECT_EQ(people.rows, (std::vector<Row>{{"Ann", "Bonn"}, {"Bob", "Rome"}}));
}

TEST(Csv, a_header_alone_is_a_table_without_rows) {
  EXPECT_TRUE(table("Name,City").rows.empty());
  EXPECT_TRUE(table("Name,City\r\n").rows.empty());
}

TEST(Csv, accepts_a_byte_order_mark_both_line_ends_and_a_missing_last_one) {
  const Table people = table("\xEF\xBB\xBFName,City\r\nAnn,Bonn\nBob,Rome");
  EXPECT_EQ(people.columns.front(), "Name");
  EXPECT_EQ(people.rows, (std::vector<Row>{{"Ann", "Bonn"}, {"Bob", "Rome"}}));
}

TEST(Csv, quotes_hold_separators_line_ends_and_doubled_quotes) {
  const Table people = table("Name,Note\n\"Ann, \"\"the\"\" one\",\"two\r\nlines\"\n\"\",\"\"\"\"\n");
  EXPECT_EQ(people.rows, (std::vector<Row>{{"Ann, \"the\" one", "two\r\nlines"}, {"", "\""}}));
}

TEST(Csv, the_separator_is_the_one_that_is_most_often_in_the_header) {
  EXPECT_EQ(table("a;b;c\n1,5;2;3\n").rows, (std::vector<Row>{{"1,5", "2", "3"}}));
  EXPECT_EQ(table("a\tb\n1,5\t2;3\n").rows, (std::vector<Row>{{"1,5", "2;3"}}));
  EXPECT_EQ(table("\"a,b,c\";d\n1;2\n").columns, (Row{"a,b,c", "d"}));
  EXPECT_EQ(table("a,b;c\n1,2\n").columns, (Row{"a", "b;c"})) << "on a tie the comma wins";
  EXPECT_EQ(table("a\n1\n").separator, ',');
}

TEST(Csv, blank_lines_are_skipped_and_blanks_of_cells_kept) {
  const Table people = table("\n  \r\n Name , City\t\n\n Ann ,\n   \n");
  EXPECT_EQ(people.columns, (Row{"Name", "City"}));
  EXPECT_EQ(people.rows, (std::vector<Row>{{" Ann ", ""}}));
}

TEST(Csv, an_empty_file_is_an_error) {
  const Errors expected{"the file is empty; its first line must name the columns"};
  EXPECT_EQ(errors(""), expected);
  EXPECT_EQ(errors("\xEF\xBB\xBF\n \n"), expected);
}

TEST(Csv, names_of_columns_are_there_and_differ) {
  EXPECT_EQ(errors("a,,A,\"\"\n"), (Errors{"line 1, column 2: the column has no name",
                                           "line 1, column 3: the name 'A' is that of column 1 already",
                                           "line 1, column 4: the column has no name"}));
}

TEST(Csv, rows_with_too_few_or_too_many_cells_are_named_by_line) {
  EXPECT_EQ(errors("a,b\n1,2\n\n\"x\ny\",2\n3\n1,2,3\n"),
            (Errors{"line 6: 1 cell, but 2 columns", "line 7: 3 cells, but 2 columns"}));
}

TEST(Csv, a_row_is_on_the_line_where_it_begins) {
  const Table people = table("\n\"a\nb\",c\r\n1,2\n\n  \n\"x\ny\n\",2\r\n3,\"\"\n");
  EXPECT_EQ(people.lines, (std::vector<std::uint32_t>{4, 7, 10}));
}

TEST(Csv, what_is_not_utf_8_is_named_by_line_and_column) {
  constexpr std::string_view rest =
      ": not UTF-8, and perhaps not the only cell; save the file as UTF-8 (in Excel: \"CSV UTF-8\")";
  std::string latin = "Id,Name\n";
  for (int i = 0; i < 200; ++i) latin += fmt::format("{},M\xFCller\n", i);
  EXPECT_EQ(errors(latin), (Errors{fmt::format("line 2, column 'Name'{}", rest)})) << "once, not for each cell";
  EXPECT_EQ(errors("Id,Name\n1\n2,\"M\n\xFC\"\n"),
            (Errors{"line 2: 1 cell, but 2 columns", fmt::format("line 3, column 'Name'{}", rest)}));
  const Errors heading = errors("Id,N\xFC\n1,\xFC\n");
  EXPECT_EQ(heading.size(), 1U);
  for (const std::string& error : heading) EXPECT_TRUE(is_utf8(error));
}

TEST(Csv, utf_16_and_nul_bytes_are_refused) {
  const Errors utf16{"line 1, column 1: the file is UTF-16; save it as UTF-8 (in Excel: \"CSV UTF-8\")"};
  EXPECT_EQ(errors("\xFF\xFE"s + "a\0,\0b\0"s), utf16);
  EXPECT_EQ(errors("\xFE\xFF"s + "\0a\0,\0b"s), utf16);
  EXPECT_EQ(errors("a\0,\0b\0\n\0"s), utf16) << "without a byte order mark";
  EXPECT_EQ(errors("\0a\0,\0b"s), utf16);
  EXPECT_EQ(errors("\xFF\xFE\0\0a\0\0\0"s).front().find("the file is UTF-32"), 18U);
  EXPECT_EQ(errors("a,b\n1\0,\"2\0\"\n"s),
            (Errors{"line 2, column 'a': a NUL byte; is the file UTF-16? Save it as UTF-8"}));
}

TEST(Csv, a_quote_without_end_is_named_where_it_began) {
  EXPECT_EQ(
      errors("a,b\n1\n2,\"x\n3,4\n5,6\n"),
      (Errors{"line 2: 1 cell, but 2 columns", "line 3, column 'b': the quote that begins here has no end"}));
  EXPECT_EQ(errors("\"a"), (Errors{"line 1, column 1: the quote that begins here has no end"}));
}

TEST(Csv, quotes_are_where_they_may_be) {
  EXPECT_EQ(
      errors("a,b\n\"1\" ,2\n1\"x\"\",2\n\"1\"\"\"x\"y\",2\n"),
      (Errors{"line 2, column 'a': text after the closing quote; a quote within quotes is doubled",
              "line 3, column 'a': a quote in a cell without quotes; put the cell in quotes and double the "
              "quote",
              "line 4, column 'a': text after the closing quote; a quote within quotes is doubled"}));
}

TEST(Csv, a_carriage_return_alone_ends_no_line) {
  EXPECT_EQ(
      errors("a,b\n1\r2,3\n"),
      (Errors{"line 2, column 'a': a carriage return in a cell without quotes; lines end with LF or CRLF"}));
}

TEST(Csv, the_first_hundred_errors_are_told) {
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) text += "1\n";
  const Errors found = errors(text);
  ASSERT_EQ(found.size(), errors_max);
  EXPECT_EQ(found.back(), "line 101: 1 cell, but 2 columns");
}

TEST(Csv, limits_hold) {
  EXPECT_EQ(errors("a,b\n1,2\n", {.bytes = 7}), (Errors{"the file has 8 bytes; at most 7 are read"}));
  EXPECT_EQ(errors("a,b,c\n1,2,3\n", {.columns = 2}), (Errors{"line 1: 3 columns; at most 2 are read"}));
  EXPECT_EQ(errors("a,b\n1,2,3,4,5\n", {.columns = 2}), (Errors{"line 2: 5 cells, but 2 columns"}));
  EXPECT_EQ(errors("a,b\n1,2\n3,4\n5,6\n", {.rows = 2}),
            (Errors{"line 4: too many rows; at most 2 are read from a file with 2 columns"}));
  EXPECT_EQ(errors("a,b\n1,2\n3,4\n", {.cells = 3}),
            (Errors{"line 3: too many rows; at most 1 are read from a file with 2 columns"}));
  EXPECT_EQ(errors("a,b\n1,2\n\n \n", {.rows = 1}), Errors{"none"});
}

std::string written(const std::vector<Row>& rows, char separator, std::string_view line_end) {
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += separator;
      text += '"';
      for (const char c : row[i]) text += c == '"' ? "\"\"" : std::string(1, c);
      text += '"';
    }
    text += line_end;
  }
  return text;
}

RC_GTEST_PROP(Csv, what_is_written_is_read_back, ()) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 5);
  const auto cell = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab,;\t\"\r\n 'x")));
  Row header;
  for (std::size_t i = 0; i < width; ++i) header.push_back(fmt::format("c{}", i));
  auto rows = *rc::gen::container<std::vector<Row>>(rc::gen::container<Row>(width, cell));
  std::vector<Row> all = rows;
  all.insert(all.begin(), header);
  const char separator = width == 1 ? ',' : *rc::gen::element(',', ';', '\t');
  const auto found = read(written(all, separator, *rc::gen::element("\n", "\r\n")));
  RC_ASSERT(found.has_value());
  RC_ASSERT(found->columns == header);
  RC_ASSERT(found->rows == rows);
}

RC_GTEST_PROP(Csv, any_text_is_a_table_or_has_errors, (const std::string& tail)) {
  const auto found = read("a,b\n" + tail, {.rows = 20});
  if (!found) {
    RC_ASSERT(!found.error().empty() && found.error().size() <= errors_max);
    return;
  }
  for (const Row& row : found->rows) {
    RC_ASSERT(row.size() == 2U);
    for (const std::string& cell : row) RC_ASSERT(is_utf8(cell));
  }
}

TEST(Csv, a_hundred_megabytes_take_about_a_second) {
  std::string text = "UserPrincipalName,MigrationDate,Department,Aliases\n";
  while (text.size() < 20'000'000)
    text +=
        "some.body@contoso.example,2026-03-01T20:00:00Z,\"Sales, "
        "EMEA\",a@contoso.example;b@contoso.example\n";
  const auto begin = std::chrono::steady_clock::now();
  const auto found = read(text);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(found.has_value());
  RecordProperty("megabytes_per_second",
                 static_cast<int>(static_cast<double>(text.size()) / 1e6 / took.count()));
  EXPECT_LT(took.count(), 5) << "20 MB, with much room for slow machines and sanitizers";
}

}  // namespace
}  // namespace baton::csv
