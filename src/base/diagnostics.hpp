// The diagnostics of one YAML document while it is read, and the checks that all parsers of documents share.
// Owned by one parser for the time of one document.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"

namespace baton {

class Diagnostics {
 public:
  void error(Position at, std::string code, std::string message, std::string hint = {});
  void warning(Position at, std::string code, std::string message, std::string hint = {});
  void add(std::vector<Diagnostic> found);  // by others, of a part of the document

  // The rest of the document cannot add anything: nobody reads more than this many.
  [[nodiscard]] bool is_full() const { return diagnostics_.size() >= diagnostics_max; }

  // "did you mean 'x'?", or nothing. Costs a comparison with each candidate, and none once this is full.
  [[nodiscard]] std::string did_you_mean(std::string_view word,
                                         const std::vector<std::string_view>& candidates) const;

  // By position; errors that were found at one place stay in the order in which they were found.
  [[nodiscard]] std::vector<Diagnostic> take();

  // The readers below answer nothing, or false, after reporting what is wrong with `node`; `what` names it:
  // "'queue' of node 'a'".
  [[nodiscard]] bool expect(const yaml::Node& node, yaml::NodeKind kind, std::string_view what);
  [[nodiscard]] std::optional<std::string> text(const yaml::Node& node, std::string_view what);
  // A text that people and queries name things by: not empty, at most 200 bytes, no control characters.
  [[nodiscard]] std::string short_text(const yaml::Node& node, std::string_view what);
  [[nodiscard]] std::optional<std::int64_t> integer(const yaml::Node& node, std::string_view what,
                                                    std::int64_t min, std::int64_t max);
  [[nodiscard]] std::optional<double> number(const yaml::Node& node, std::string_view what, double min,
                                             double max);
  // One of a few words; answers its place among `words`.
  [[nodiscard]] std::optional<std::size_t> word(const yaml::Node& node, std::string_view what,
                                                const std::vector<std::string_view>& words);

  void wrong_type(const yaml::Node& node, std::string_view what, std::string_view expected);
  // An unknown key is an error when it looks like a slip for a known one, and a warning otherwise.
  void check_keys(const yaml::Node& mapping, const std::vector<std::string_view>& known,
                  std::string_view where);

 private:
  void add(Diagnostic::Level level, Position at, std::string code, std::string message, std::string hint);

  static constexpr std::size_t diagnostics_max = 200;
  std::vector<Diagnostic> diagnostics_;
};

// Turns errors with one of these codes into warnings.
void forgive(std::vector<Diagnostic>& diagnostics, const std::vector<std::string_view>& codes);

// [A-Za-z0-9_.-]{1,100}: the names that people give to documents and their parts.
[[nodiscard]] bool is_name(std::string_view text);
inline constexpr std::string_view name_rule = "1 to 100 letters, digits, '_', '.' or '-'";

}  // namespace baton
