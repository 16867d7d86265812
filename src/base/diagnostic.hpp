// What is wrong with a document a person wrote: where, what, and what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton {

struct Position {
  int line = 1;    // from 1
  int column = 1;  // from 1, in bytes
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Diagnostic {
  enum class Level { error, warning };
  Level level = Level::error;
  Position at;
  std::string code;     // stable, for programs: "unknown_key"
  std::string message;  // for people: "unknown key 'handlr' in node 'echo'"
  std::string hint;     // may be empty: "did you mean 'handler'?"
};

[[nodiscard]] bool has_errors(const std::vector<Diagnostic>& diagnostics);

// The candidate nearest to `word`, when it is near enough to be a slip of the fingers; empty otherwise.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates);

// 'text' for a message, cut short when a person would not want to read it whole.
[[nodiscard]] std::string in_quotes(std::string_view text);

// One line a diagnostic, as compilers print them: "FILE:3:5: error: message (hint) [code]".
[[nodiscard]] std::string render(std::string_view file, const Diagnostic& diagnostic);

}  // namespace baton
