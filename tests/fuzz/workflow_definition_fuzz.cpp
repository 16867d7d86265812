// Whatever is published, reading it must not crash, and what is accepted must hold together.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "base/yaml.hpp"
#include "core/workflow/definition/definition.hpp"
#include "core/workflow/definition/input.hpp"

namespace {

void check_json(const baton::Json& json) {
  boost::json::parse_options options;
  options.max_depth = 256;
  boost::json::error_code error;
  (void)boost::json::parse(json.text, error, {}, options);
  ENSURE(!error);
}

// Nothing is there to look at: what needs something fails, and what does not makes JSON.
struct EmptyScope final : baton::expression::Scope {
  [[nodiscard]] const boost::json::value* inputs() const override { return nullptr; }
  [[nodiscard]] const boost::json::value* node(std::string_view, std::string_view) const override {
    return nullptr;
  }
};

void check_params(const baton::expression::Document& params) {
  if (params.is_constant()) check_json(params.constant());
  if (const auto value = params.evaluate(EmptyScope())) check_json(*value);
}

void check_definition(const baton::workflow::Definition& definition) {
  using baton::workflow::NodeType;
  for (baton::workflow::NodeIndex i = 0; i < definition.nodes.size(); ++i) {
    const auto& node = definition.nodes[i];
    ENSURE(definition.find(node.id) == i);
    ENSURE(node.incoming.empty() == (i == definition.start));
    ENSURE(node.next.empty() == (node.type == NodeType::end));
    ENSURE(node.branches.empty() == (node.type != NodeType::conditional));
    ENSURE(node.source.has_value() == (node.type == NodeType::fan_out));
    ENSURE((node.duration.has_value() != node.until.has_value()) == (node.type == NodeType::wait));
    for (const auto& branch : node.branches) ENSURE(!branch.next.empty());
    if (node.params) check_params(*node.params);
    ENSURE(node.retry.delay_before(1000) >= baton::Duration::zero());
  }
  if (const auto input = check_input(definition, {"{}"})) check_json(*input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto document = baton::yaml::parse(text)) check_json(to_json(*document));
  const auto parsed = baton::workflow::parse(text);
  ENSURE((parsed.definition == nullptr) == baton::has_errors(parsed.diagnostics));
  if (parsed.definition) check_definition(*parsed.definition);
  return 0;
}
