// What the tests of data sources share: a directory of their own, and connections that are a map.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <string>

#include "scheduler/sources.hpp"

namespace baton::scheduler {

class SourceTest : public ::testing::Test {
 protected:
  SourceTest() {
    std::string name = (std::filesystem::temp_directory_path() / "baton-sources-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~SourceTest() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, std::string_view text) const {
    const auto path = directory_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  Result<SourceTable> fetch(runbook::SourceType type, const std::string& connection,
                            const std::string& query = {}, const Limits& limits = {}) {
    runbook::DataSource source;
    source.type = type;
    source.connection = "WAVES";
    source.query = query;
    source.primary_key = "Upn";
    source.batch_time_column = "Date";
    Sources sources(
        [&](const std::string& name) { return name == "WAVES" ? std::optional(connection) : std::nullopt; },
        get_, limits);
    auto table = sources.fetch(source);
    if (!table) {
      EXPECT_EQ(table.error().message.find(connection), std::string::npos) << table.error().message;
    }
    return table;
  }

  // Whether a fetch that would take long ends with an error within a second once the sources are interrupted,
  // and later ones at once.
  bool ends_when_interrupted(runbook::SourceType type, const std::string& connection, const std::string& query) {
    using Clock = std::chrono::steady_clock;
    runbook::DataSource source;
    source.type = type;
    source.connection = "WAVES";
    source.query = query;
    Sources sources([&](const std::string&) { return std::optional(connection); }, get_, {});
    auto under_way = std::async(std::launch::async, [&] { return sources.fetch(source); });
    const bool waits = under_way.wait_for(std::chrono::milliseconds{300}) == std::future_status::timeout;
    const auto from = Clock::now();
    sources.interrupt();
    const bool ended = !under_way.get() && !sources.fetch(source);
    return waits && ended && Clock::now() - from < std::chrono::seconds{1};
  }

  static std::string shown(const runbook::Cell& cell) {
    return !cell ? "-" : (cell.is_literal() ? "=" : "") + cell.text();
  }
  // "a,b|1,=2|3,-": columns, then rows; a missing cell is a dash, a number or boolean has '=' before it. Or the error.
  static std::string shown(const Result<SourceTable>& table) {
    if (!table) return table.error().message;
    std::string text = fmt::format("{}", fmt::join(table->columns, ","));
    for (const auto& row : table->rows) {
      EXPECT_EQ(row.size(), table->columns.size());
      text += '|';
      for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + shown(row[i]);
    }
    return text;
  }
  static Code code(const Result<SourceTable>& table) {
    if (table) ADD_FAILURE() << "no error: " << shown(table);
    return table ? Code::unknown : table.error().code;
  }

  std::filesystem::path directory_;
  HttpGet get_;
};

}  // namespace baton::scheduler
