// Whatever arrives as JSON, reading it must not crash; what was read is compact, reads again as itself, and
// other readers of JSON take it, too.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json_document.hpp"
#include "base/result.hpp"

namespace {

using baton::JsonKind;
using baton::JsonView;

void check_view(const JsonView& view, int levels) {
  ENSURE(view);
  const auto again = baton::JsonDocument::parse(view.json().text);
  ENSURE(again && again->root().kind() == view.kind() && again->root().json() == view.json());
  switch (view.kind()) {
    case JsonKind::null: ENSURE(view.is_null()); break;
    case JsonKind::boolean: ENSURE(again->root().boolean() == view.boolean()); break;
    case JsonKind::integer: ENSURE(again->root().integer() == view.integer()); break;
    case JsonKind::real: break;
    case JsonKind::string:
      ENSURE(baton::is_utf8(view.string()) && again->root().string() == view.string());
      break;
    case JsonKind::array:
      if (levels > 0)
        for (const auto& item : view.items()) check_view(item, levels - 1);
      break;
    case JsonKind::object:
      if (levels > 0)
        for (const auto& [key, value] : view.members()) {
          ENSURE(baton::is_utf8(key) && view.find(key) && view.find_any_case(key));
          check_view(value, levels - 1);
        }
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = baton::JsonDocument::parse(text);
  if (!document) {
    ENSURE(!document.error().message.empty());
    return 0;
  }
  ENSURE(document->root().json().text.size() <= 6 * text.size());  // an escape is the longest form of a byte
  check_view(document->root(), 2);
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = 64;
  (void)boost::json::parse(document->root().json().text, error, {}, options);
  ENSURE(!error);
  return 0;
}
