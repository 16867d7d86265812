// The rules of the house that a compiler does not check.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/source_dir.hpp"

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

template <class Visit>
void each_source(const std::string& folder, Visit visit) {
  for (const auto& entry : fs::recursive_directory_iterator(baton::support::source_dir() / folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".cpp" || extension == ".hpp") visit(entry.path(), read(entry.path()));
  }
}

TEST(Layers, EachFolderIncludesOnlyTheLayersBelowIt) {
  const std::map<std::string, std::set<std::string>> may_see{
      {"base", {"base"}},
      {"core", {"base", "core"}},
      {"ports", {"base", "core", "ports"}},
      {"engine", {"base", "core", "ports", "engine"}},
      {"store", {"base", "core", "ports", "store"}},
      {"http", {"base", "core", "ports", "http"}},
      {"bus", {"base", "core", "ports", "bus"}},
      {"caller", {"base", "core", "ports", "caller"}},
      {"worker", {"base", "core", "ports", "worker"}},
      {"scheduler", {"base", "core", "ports", "scheduler"}},
      {"server", {"base", "core", "ports", "engine", "store", "http", "bus", "caller", "worker", "scheduler", "server"}},
      {"cli", {"base", "core", "ports", "engine", "store", "http", "bus", "caller", "worker", "scheduler", "server", "cli"}},
  };
  const std::regex include("#include \"([a-z_]+)/");
  for (const auto& [folder, allowed] : may_see) {
    each_source("src/" + folder, [&](const fs::path& path, const std::string& text) {
      const std::string name = path.stem();
      if (name.ends_with("_test") || name.ends_with("_fixture")) return;  // these may see tests/support
      for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it)
        EXPECT_TRUE(allowed.contains((*it)[1])) << path << " includes " << (*it)[0];
    });
  }
}

TEST(Layers, CoreHasNoClocksNoChanceNoThreadsAndNoFiles) {
  const std::regex forbidden(
      "system_clock::now|steady_clock|random_device|mt19937|std::thread|std::mutex|<thread>|<mutex>|<fstream>"
      "|<filesystem>|"
      "<random>|sys/socket|getenv|std::ifstream|fopen|::time\\(");
  each_source("src/core", [&](const fs::path& path, const std::string& text) {
    if (path.stem().string().ends_with("_test")) return;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, forbidden)) << path << " says " << found.str();
  });
}

TEST(Layers, JsonIsWrittenInOnePlace) {
  const std::set<std::string> may_write{"json_write.cpp", "data_columns.cpp"};  // the second makes cells of tables
  each_source("src", [&](const fs::path& path, const std::string& text) {
    if (path.stem().string().ends_with("_test") || may_write.contains(path.filename())) return;
    EXPECT_FALSE(text.contains("json::serialize")) << path << " writes JSON where append_value() or json_text() is meant";
  });
}

TEST(Layers, ProgramsAreStartedInOnePlace) {
  const std::regex forbidden("std::system\\(|popen\\(|posix_spawn|\\bv?fork\\(");
  for (const char* folder : {"src", "tests"})
    each_source(folder, [&](const fs::path& path, const std::string& text) {
      if (path.filename() == "process.cpp" || path.filename() == "layers_test.cpp") return;
      std::smatch found;
      EXPECT_FALSE(std::regex_search(text, found, forbidden)) << path << " says " << found.str() << " where Process is meant";
    });
}

// `.jobs` is what the answer to a poll calls tasks of whatever kind.
TEST(Layers, TheEngineHasNoWordOfAKindOutsideOfItsFolder) {
  const std::regex forbidden(
      "engine/kinds/|[Rr]unbook|[Ww]orkflow|[Ss]ervice [Cc]all|call::|Calls\\b|DueCall|[Dd]ata.?[Ss]ource|[Ss]cheduler"
      "|[Aa]pproval|[Ff]an.?(out|in)\\b|\\b[Mm]ember|Members|\\b[Pp]hase|Phases|\\b[Ss]teps?\\b|[Jj]ob(?!s\\b)"
      "|[^.]jobs\\b|Jobs\\b");
  each_source("src/engine", [&](const fs::path& path, const std::string& text) {
    const std::string name = path.stem();
    if (path.string().contains("/engine/kinds/") || name.ends_with("_test") || name.ends_with("_fixture")) return;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, forbidden)) << path << " says " << found.str();
  });
}

TEST(Layers, WhatBecomesOfABatchIsATransitionAndNoAssignment) {
  const std::regex assignment("(\\.|->)(status|job_state|walk) *=[^=]");
  each_source("src/core/runbook/machine", [&](const fs::path& path, const std::string& text) {
    const std::string name = path.stem();
    if (name.ends_with("_test") || name.ends_with("_fixture")) return;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, assignment))
        << path << " says " << found.str() << " where Decision::change() is meant";
  });
}

}  // namespace
