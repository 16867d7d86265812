// {{Variable}} in the texts of a runbook. Variables are the columns of a member, what earlier steps put out,
// and _batch_id and _batch_start_time. Not the expressions of workflows: a name, nothing else. Pure; a Scope
// may be read by several threads.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"

namespace baton::runbook {

// The names that a text, or any string nested in a JSON document, refers to; in order, each once.
[[nodiscard]] std::vector<std::string> variables_in_text(std::string_view text);
[[nodiscard]] std::vector<std::string> variables_in_json(const Json& document);

// What is wrong with the braces of a text: "{{" without "}}", an empty or impossible name. Empty: nothing.
[[nodiscard]] std::string template_error(std::string_view text);

// A rendered text or document is at most so long: a thousand variables of a large cell each would be gigabytes.
constexpr std::size_t rendered_bytes_max = 1 << 20;

// Why a text or a document cannot be rendered.
struct NotRendered {
  // The first variable that is unknown, or what stands in braces that are broken. Of what is too long: the variable that
  // made it so, or the first of its string; empty: what comes after the last one did.
  std::string variable;
  bool is_too_long = false;
  friend bool operator==(const NotRendered&, const NotRendered&) = default;
};

// What a step may refer to. Names match exactly; where the exact name is absent, without regard to case (of
// ASCII letters). _batch_id (text) and _batch_start_time (ISO 8601) hide columns of these names; the latter
// is unknown where the batch has no T.
class Scope {
 public:
  // data: what the source said of the member; worker_data: what steps put out, which wins. Both are JSON
  // objects or absent. Text that is not a JSON object counts as absent.
  Scope(const OptionalJson& data, const OptionalJson& worker_data, std::int64_t batch_id,
        std::optional<Time> batch_start_time);
  ~Scope();
  Scope(Scope&&) noexcept;
  Scope& operator=(Scope&&) noexcept;

  // The text with its variables replaced. An array or object within a longer text is its JSON, null is empty.
  [[nodiscard]] std::expected<std::string, NotRendered> text(std::string_view text) const;
  // The document with the variables in its strings replaced. A string that is one variable and nothing else
  // becomes that variable's value, so that an array stays an array. Only values are replaced, not keys.
  [[nodiscard]] std::expected<Json, NotRendered> json(const Json& document) const;

 private:
  struct Values;
  std::unique_ptr<Values> values_;
};

// The fields of a result that a step's output_params name (variable ← field, matched without regard to case;
// the field may be a.b.c), merged into `before`; `before` as it is when there are none. The result is a JSON
// text as the worker sent it; of a poll step the caller passes its `data`. Fields that it lacks change
// nothing.
[[nodiscard]] OptionalJson merge_outputs(const OptionalJson& before, const Json& result,
                                         const std::map<std::string, std::string>& output_params);

}  // namespace baton::runbook
