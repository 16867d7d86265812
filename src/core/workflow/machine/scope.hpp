// What the expressions of a job's nodes can see: its input, what other nodes made, and an item of a fan-out.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <string>

#include "core/template/document.hpp"
#include "core/template/expression.hpp"
#include "core/workflow/machine/run.hpp"

namespace baton::workflow {

using Environment = std::map<std::string, std::string>;  // what expressions may see of the server's

// Documents, parsed when first looked at. What a terminal node made never changes, so they may be kept.
class Values {
 public:
  // What they read counts as steps of the batch.
  [[nodiscard]] const boost::json::value& input(const Run& run, Decided& decided);
  [[nodiscard]] const boost::json::value* output(NodeIndex node, const NodeState& state, Decided& decided);

 private:
  std::optional<boost::json::value> input_;
  std::map<NodeIndex, boost::json::value> outputs_;
};

// What is stored, as a value: it was well-formed when it came in.
[[nodiscard]] boost::json::value parsed(const std::string& text);
// Bytes of JSON that are read in about the time of a step of an expression.
inline constexpr std::size_t json_per_step = 8;

class RunScope final : public expression::Scope {
 public:
  RunScope(Run& run, const Environment& environment, Decided& decided);
  void set_item(const boost::json::value* item, std::int64_t index) {
    item_ = item;
    index_ = index;
  }

  // All of them throw NotLoaded when the row is not at hand.
  [[nodiscard]] const boost::json::value* inputs() const override;
  [[nodiscard]] const boost::json::value* node(std::string_view name, std::string_view field) const override;
  [[nodiscard]] const boost::json::value* item() const override { return item_; }
  [[nodiscard]] std::optional<std::int64_t> index() const override { return index_; }
  [[nodiscard]] const boost::json::value* env(std::string_view name) const override;
  void spent(std::size_t steps) const noexcept override { decided_.spend(steps); }

  expression::Document::Memo memo;  // for the params of one node, with item after item

 private:
  Run& run_;
  const Environment& environment_;
  Decided& decided_;
  const boost::json::value* item_ = nullptr;
  std::optional<std::int64_t> index_;
  mutable std::map<std::string, boost::json::value, std::less<>> words_;  // statuses, errors, variables
};

}  // namespace baton::workflow
