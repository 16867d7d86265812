// Rules of a document, broken: each is found where it is broken, with its code and its hint, and all of them
// at once. A mark (@) in a document says where the next diagnostic is expected.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "tests/support/source_dir.hpp"

namespace baton::support {

struct Expected {
  std::string code;  // of a warning: with a question mark
  std::string hint = {};
};
struct Rule {
  std::string name;
  std::string marked;
  std::vector<Expected> expected;
};
using Rules = std::vector<Rule>;

// The document without its marks, and where they stood.
inline std::pair<std::string, std::vector<Position>> without_marks(const std::string& marked) {
  std::string text;
  std::vector<Position> marks;
  Position here;
  for (const char c : marked) {
    if (c == '@') {
      marks.push_back(here);
      continue;
    }
    text += c;
    here = c == '\n' ? Position{here.line + 1, 1} : Position{here.line, here.column + 1};
  }
  return {text, marks};
}

inline std::string shown(Position at, const std::string& code, const std::string& hint) {
  return std::to_string(at.line) + ":" + std::to_string(at.column) + " " + code +
         (hint.empty() ? "" : " (" + hint + ")") + "\n";
}

// `parse` answers a `Parsed`, with a definition unless there is any error.
template <class Parse>
void check(const Rules& rules, Parse parse) {
  for (const Rule& rule : rules) {
    const auto [text, marks] = without_marks(rule.marked);
    ASSERT_EQ(marks.size(), rule.expected.size()) << rule.name;
    std::string expected, found;
    for (std::size_t i = 0; i < marks.size(); ++i)
      expected += shown(marks[i], rule.expected[i].code, rule.expected[i].hint);
    const auto parsed = parse(text);
    for (const Diagnostic& each : parsed.diagnostics)
      found += shown(each.at, each.code + (each.level == Diagnostic::Level::warning ? "?" : ""), each.hint);
    EXPECT_EQ(found, expected) << rule.name << "\n" << text.substr(0, 2000);
    EXPECT_EQ(parsed.definition == nullptr, has_errors(parsed.diagnostics)) << rule.name;
    for (const Diagnostic& each : parsed.diagnostics) EXPECT_FALSE(each.message.empty()) << rule.name;
  }
}

// The codes that the table expects somewhere.
inline std::set<std::string> codes_of(const Rules& rules) {
  std::set<std::string> codes;
  for (const Rule& rule : rules)
    for (const Expected& each : rule.expected) codes.insert(each.code.substr(0, each.code.find('?')));
  return codes;
}

// The codes in a source file, under src; `pattern` has them as its first group.
inline std::set<std::string> codes_in(const std::string& file, const char* pattern) {
  std::ifstream stream(source_dir() / "src" / file);
  EXPECT_TRUE(stream) << file;
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const std::regex expression(pattern);
  std::set<std::string> codes;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it)
    codes.insert((*it)[1]);
  EXPECT_FALSE(codes.empty()) << file;
  return codes;
}
inline constexpr const char* reported = R"re((?:error|warning|refuse)\([^";]*"([a-z_]+)")re";

}  // namespace baton::support
