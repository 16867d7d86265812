#include "http/admin/target.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "core/message/settings.hpp"

namespace baton::http::admin {
namespace {

// "a" and "b" of "a/WORD/b", also of "a/WORD/" and "a/WORD", without regard to the case of the word.
struct Halves {
  std::string_view before, after;
};
std::optional<Halves> split_at(std::string_view path, std::string_view word) {
  const std::string small = lower(path), between = "/" + lower(word);
  for (auto at = small.find(between); at != small.npos; at = small.find(between, at + 1)) {
    const auto end = at + between.size();
    if (end != small.size() && small[end] != '/') continue;
    return Halves{path.substr(0, at), path.substr(std::min(end + 1, path.size()))};
  }
  return std::nullopt;
}

std::optional<Target> about_subscription(std::string_view topic, std::string_view rest) {
  using enum Target::What;
  if (topic.empty()) return std::nullopt;
  if (rest.empty()) return Target{subscriptions, std::string(topic), {}};
  const auto halves = split_at(rest, "Rules");
  const std::string path = message::subscription_path(topic, halves ? halves->before : rest);
  if (!halves) return Target{entity, path, {}};
  if (halves->after.empty()) return Target{rules, path, {}};
  return Target{rule, path, std::string(halves->after)};
}

}  // namespace

std::optional<Target> parse_target(std::string_view path) {
  using enum Target::What;
  const auto decoded = percent_decode(path);
  if (!decoded || !decoded->starts_with('/')) return std::nullopt;
  std::string_view name = std::string_view(*decoded).substr(1);
  if (name.ends_with('/')) name.remove_suffix(1);
  if (name.empty()) return std::nullopt;
  if (equal_ignoring_case(name, "$namespaceinfo")) return Target{namespace_info, {}, {}};
  if (equal_ignoring_case(name, "$Resources/Queues")) return Target{queues, {}, {}};
  if (equal_ignoring_case(name, "$Resources/Topics")) return Target{topics, {}, {}};
  if (name.starts_with('$')) return std::nullopt;
  if (const auto halves = split_at(name, "Subscriptions")) return about_subscription(halves->before, halves->after);
  return Target{entity, std::string(name), {}};
}

}  // namespace baton::http::admin
