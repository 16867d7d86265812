#include "base/diagnostic.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace baton {
namespace {

TEST(Diagnostic, is_rendered_as_compilers_do) {
  const Diagnostic error{
      Diagnostic::Level::error, {3, 5}, "unknown_key", "unknown key 'handlr'", "did you mean 'handler'?"};
  EXPECT_EQ(render("a.yaml", error),
            "a.yaml:3:5: error: unknown key 'handlr' (did you mean 'handler'?) [unknown_key]");
  const Diagnostic warning{Diagnostic::Level::warning, {1, 1}, "code", "message", ""};
  EXPECT_EQ(render("-", warning), "-:1:1: warning: message [code]");
}

TEST(Diagnostic, warnings_alone_are_not_errors) {
  EXPECT_FALSE(has_errors({}));
  EXPECT_FALSE(has_errors({{Diagnostic::Level::warning, {}, "", "", ""}}));
  EXPECT_TRUE(
      has_errors({{Diagnostic::Level::warning, {}, "", "", ""}, {Diagnostic::Level::error, {}, "", "", ""}}));
}

TEST(Nearest, finds_slips_of_the_fingers_and_nothing_else) {
  struct Case {
    std::string_view word;
    std::string_view expected;
  };
  const std::vector<std::string_view> keys{"handler", "queue", "next", "timeout_seconds", "retry", "a"};
  for (const auto& [word, expected] : std::vector<Case>{
           {"handlr", "handler"},                  // a letter missing
           {"handdler", "handler"},                // a letter too many
           {"hnadler", "handler"},                 // neighbours swapped
           {"qeue", "queue"},                      //
           {"NEXT", "next"},                       // case alone
           {"timeout", "timeout_seconds"},         // the unit left out
           {"timeout_second", "timeout_seconds"},  //
           {"b", ""},                              // one letter is near to every other
           {"params", ""},                         //
           {"", ""},                               //
           {"next", ""},                           // the word itself is no correction
       })
    EXPECT_EQ(nearest(word, keys), expected) << word;
}

TEST(Nearest, prefers_the_fewest_slips) { EXPECT_EQ(nearest("stepp_1", {"step_2", "step_1"}), "step_1"); }

TEST(Nearest, does_not_look_at_words_that_nobody_types) {
  const std::string word(5000, 'x');
  EXPECT_EQ(nearest(word, {std::string_view(word).substr(1)}), "");
}

// The plain recursive definition, to compare with.
std::size_t slips(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  std::size_t least = std::min(slips(a.substr(1), b), slips(a, b.substr(1))) + 1;
  least = std::min(least, slips(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1));
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0])
    least = std::min(least, slips(a.substr(2), b.substr(2)) + 1);
  return least;
}

RC_GTEST_PROP(Nearest, agrees_with_the_definition_of_edit_distance, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc")));
  const std::string a = (*letters).substr(0, 7);
  const std::string b = (*letters).substr(0, 7);
  const std::size_t allowed = a.size() <= 1 ? 0 : a.size() <= 5 ? 1 : 2;
  RC_ASSERT(nearest(a, {b}).empty() == (a == b || a.empty() || b.empty() || slips(a, b) > allowed));
}

TEST(InQuotes, cuts_long_text_between_characters) {
  EXPECT_EQ(in_quotes("short"), "'short'");
  EXPECT_EQ(in_quotes(std::string(99, 'x') + "\u00e9\u00e9"), "'" + std::string(99, 'x') + "...'");
}

}  // namespace
}  // namespace baton
