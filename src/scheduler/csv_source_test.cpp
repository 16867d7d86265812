#include <sys/stat.h>

#include "scheduler/source_fixture.hpp"

namespace baton::scheduler {
namespace {

using enum runbook::SourceType;

class CsvSource : public SourceTest {};

TEST_F(CsvSource, reads_a_file_by_path_or_url) {
  const auto path = file("waves.csv", "\xEF\xBB\xBFUpn;Date\r\nann;2026-03-01\r\nbob;\r\n");
  EXPECT_EQ(shown(fetch(csv, path)), "Upn,Date|ann,2026-03-01|bob,");
  EXPECT_EQ(shown(fetch(csv, "file://" + path)), "Upn,Date|ann,2026-03-01|bob,");
}

TEST_F(CsvSource, a_connection_that_is_not_there_is_named) {
  Sources sources([](const std::string&) { return std::optional<std::string>(); }, {});
  runbook::DataSource source;
  source.connection = "WAVES_CSV";
  EXPECT_EQ(
      sources.fetch(source).error().message,
      "connection 'WAVES_CSV': the server has neither an environment variable nor a configured connection of this "
      "name; set it where 'baton serve' is started, not where the command line runs, and start the server again");
}

TEST_F(CsvSource, a_file_that_cannot_be_read_is_an_error_without_its_path) {
  const auto missing = fetch(csv, (directory_ / "missing.csv").string());
  EXPECT_EQ(shown(missing), "connection 'WAVES': cannot read the file: No such file or directory");
  EXPECT_EQ(code(missing), Code::unavailable);
  EXPECT_EQ(shown(fetch(csv, directory_.string())), "connection 'WAVES': not a file");
  const auto pipe = (directory_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(shown(fetch(csv, pipe)), "connection 'WAVES': not a file");
}

TEST_F(CsvSource, an_empty_file_is_not_nobody) {
  const auto empty = fetch(csv, file("empty.csv", ""));
  EXPECT_EQ(shown(empty), "connection 'WAVES': the file is empty; its first line must name the columns");
  EXPECT_EQ(code(empty), Code::invalid);
}

TEST_F(CsvSource, all_errors_are_told_by_line_and_column) {
  EXPECT_EQ(shown(fetch(csv, file("wrong.csv", "Upn,Date\nann\nb\xFC,2026-03-01\n"))),
            "connection 'WAVES': line 2: 1 cell, but 2 columns\n"
            "line 3, column 'Upn': not UTF-8, and perhaps not the only cell; save the file as UTF-8 (in Excel: \"CSV UTF-8\")");
}

TEST_F(CsvSource, rows_know_on_which_line_they_begin) {
  const auto table = fetch(csv, file("waves.csv", "Upn,Date\n\n\"ann\nlee\",1\nbob,2\n"));
  ASSERT_TRUE(table) << shown(table);
  EXPECT_EQ(table->lines, (std::vector<std::uint32_t>{3, 5}));
}

TEST_F(CsvSource, limits_hold) {
  const auto path = file("waves.csv", "Upn,Date\nann,1\nbob,2\n");
  EXPECT_EQ(shown(fetch(csv, path, {}, {.bytes = 10})),
            "connection 'WAVES': the file has 21 bytes; at most 10 are read");
  EXPECT_EQ(shown(fetch(csv, path, {}, {.rows = 1})),
            "connection 'WAVES': line 3: too many rows; at most 1 are read from a file with 2 columns");
}

}  // namespace
}  // namespace baton::scheduler
