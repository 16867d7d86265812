// Whatever is published, reading it must not crash, and what is accepted must hold together.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "base/yaml.hpp"
#include "core/workflow/definition.hpp"
#include "core/workflow/input.hpp"

namespace {

void check_json(const baton::Json& json) {
  boost::json::parse_options options;
  options.max_depth = 256;
  boost::json::error_code error;
  (void)boost::json::parse(json.text, error, {}, options);
  ENSURE(!error);
}

void check_definition(const baton::workflow::Definition& definition) {
  for (baton::workflow::NodeIndex i = 0; i < definition.nodes.size(); ++i) {
    const auto& node = definition.nodes[i];
    ENSURE(definition.find(node.id) == i);
    ENSURE((node.dependencies == 0) == (i == definition.start));
    ENSURE(node.next.empty() == (node.type == baton::workflow::NodeType::end));
    if (node.params) check_json(*node.params);
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
