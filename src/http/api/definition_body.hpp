// A definition that came as the body of a request: YAML, read here when it is short, on another thread when
// it would hold up everybody else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "http/json/problem.hpp"
#include "http/wire/context.hpp"

namespace baton::http {

inline constexpr std::size_t parse_here_max = 16 * 1024;

// None: it may be one.
[[nodiscard]] inline std::optional<Response> check_definition(const Request& request) {
  if (request.content_type.starts_with("application/json") ||
      request.content_type.starts_with("multipart/")) {
    return problem(415, "unsupported_media_type", "the body must be the definition as application/yaml");
  }
  if (request.body.empty()) return problem("the body is empty", {{"", "must be a definition in YAML"}});
  return std::nullopt;
}

// parse: string_view -> Parsed. None: the server is stopping. `text` must last as long as the context.
template <class Parse, class Parsed = std::invoke_result_t<Parse&, std::string_view>>
Task<std::optional<Parsed>> parse_definition(Context& context, const std::string& text, Parse parse) {
  std::optional<Parsed> parsed;
  if (text.size() <= parse_here_max) {
    parsed = parse(text);
    co_return parsed;
  }
  auto work = [text, parse] { return parse(text); };
  parsed = co_await context.compute(std::move(work));
  co_return parsed;
}

}  // namespace baton::http
