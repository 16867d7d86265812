// The expressions of workflows: `{{ inputs.urls | length > 10 }}`, the subset of Jinja that people know. The
// guide is docs/guide/expressions.md, and a test checks each of its examples.
//
// Pure: no clock, no I/O, no chance. A Template is immutable, cheap to copy and safe to share between
// threads. Whatever the text and the values are, parsing takes time linear in the text, and evaluating ends
// within a budget of steps and of text built.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::expression {

struct Problem {
  std::size_t offset = 0;  // bytes into the template text
  std::string message;
  std::string hint;       // may be empty
  std::string code;       // stable, for programs: "expression_syntax", "unknown_name", "undefined", ...
  std::size_t place = 0;  // of an evaluated Document: which of its places()
};

// Guarded: the reference stands under `default`, `is defined` or `is not defined`, so that it may be missing.
struct NodeReference {
  std::string node;
  std::string field;  // output, status or error
  std::size_t offset = 0;
  bool guarded = false;
};
struct InputReference {
  std::string name;
  std::size_t offset = 0;
  bool guarded = false;
};

// Everything the text may look at, found at parse.
struct References {
  bool inputs = false;  // any use of inputs
  bool item = false;
  bool index = false;
  std::size_t item_offset = 0;              // the first use of item or index
  std::vector<InputReference> input_names;  // inputs.NAME and inputs['NAME']; bare `inputs` gives none
  std::vector<NodeReference> nodes;
  std::vector<std::string> env;
};

// Where values come from. A null pointer: not defined. Pointers stay valid during the evaluation.
class Scope {
 public:
  virtual ~Scope() = default;
  [[nodiscard]] virtual const boost::json::value* inputs() const = 0;
  [[nodiscard]] virtual const boost::json::value* node(std::string_view name,
                                                       std::string_view field) const = 0;
  [[nodiscard]] virtual const boost::json::value* item() const { return nullptr; }
  [[nodiscard]] virtual std::optional<std::int64_t> index() const { return std::nullopt; }
  [[nodiscard]] virtual const boost::json::value* env(std::string_view /*name*/) const { return nullptr; }
  // Told when an evaluation ends, however it ends: what it cost, with text_per_step bytes built as a step.
  virtual void spent(std::size_t /*steps*/) const noexcept {}
};

inline constexpr std::size_t template_bytes_max = 1 << 20;
inline constexpr std::size_t expression_bytes_max = 16 << 10;
inline constexpr int depth_max = 64;                 // of an expression, and of JSON that is built or read
inline constexpr std::size_t steps_max = 1'000'000;  // an operation, an element looked at, 64 bytes scanned
inline constexpr std::size_t text_bytes_max = 16 << 20;  // of text and values built in one evaluation
inline constexpr std::size_t text_per_step = 16;         // bytes that take about the time of a step

struct Program;
class Evaluator;

class Template {
 public:
  // Text with {{ }}. When the whole text, but for blanks around it, is one expression, its value keeps its
  // type; otherwise the parts are joined as text: strings as they are, everything else as compact JSON.
  [[nodiscard]] static std::expected<Template, Problem> parse(std::string_view text);
  // A bare expression, without braces.
  [[nodiscard]] static std::expected<Template, Problem> parse_expression(std::string_view text);

  [[nodiscard]] bool is_constant() const;  // has no expression at all
  [[nodiscard]] const References& references() const;
  [[nodiscard]] std::expected<boost::json::value, Problem> evaluate(const Scope& scope) const;

 private:
  friend class Document;
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  // Appends the value as JSON; several templates may share the evaluator's budget. `depth` is how deep the
  // value will stand in what it is appended to.
  [[nodiscard]] std::expected<void, Problem> append_json(Evaluator& evaluator, int depth,
                                                         std::string& out) const;

  std::shared_ptr<const Program> program_;
};

[[nodiscard]] bool has_expression(std::string_view text);  // contains {{, {% or {#

// As in Jinja: null, false, 0, "", [] and {} are false.
[[nodiscard]] bool truthy(const boost::json::value& value);

// "a string", "an object": for messages.
[[nodiscard]] std::string_view describe(boost::json::kind kind);

}  // namespace baton::expression
