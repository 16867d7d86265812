// What the messages of a simulated world say to rules, and which of them rules select: known from the number of a message
// without asking the filters.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "core/message/envelope.hpp"
#include "core/message/rule_description.hpp"

namespace baton::simulation {

inline constexpr std::string_view topic_path = "news";
inline constexpr std::string_view audit_name = "audit";  // the subscription that has every message

// The number of a message is in its content: "news#17".
[[nodiscard]] inline std::int64_t number_in(std::string_view content) {
  const auto at = content.rfind('#');
  return at == content.npos ? 0 : std::strtoll(std::string(content.substr(at + 1)).c_str(), nullptr, 10);
}

[[nodiscard]] inline std::shared_ptr<const message::Envelope> envelope_of(std::int64_t number, const std::string& message_id) {
  auto made = std::make_shared<message::Envelope>();
  made->message_id = message_id;
  made->label = "L" + std::to_string(number % 3);
  made->properties["color"] = std::string(number % 2 == 0 ? "red" : "blue");
  made->properties["n"] = number % 8;
  return made;
}

struct KnownRule {
  std::string_view name;
  bool has_action;
  bool (*selects)(std::int64_t number);
};
inline constexpr std::array known_rules{
    KnownRule{"$Default", false, [](std::int64_t) { return true; }},
    KnownRule{"none", false, [](std::int64_t) { return false; }},
    KnownRule{"red", false, [](std::int64_t n) { return n % 2 == 0 && n % 8 > 3; }},
    KnownRule{"label", false, [](std::int64_t n) { return n % 3 == 1; }},
    KnownRule{"act", true, [](std::int64_t n) { return n % 8 >= 5; }},
};

[[nodiscard]] inline message::RuleDescription description_of(std::string_view name) {
  message::RuleDescription rule{.name = std::string(name), .filter = message::TrueFilter{}, .action = std::nullopt};
  if (name == "none") rule.filter = message::FalseFilter{};
  if (name == "red") rule.filter = message::SqlText{"color = 'red' AND n > 3", {}};
  if (name == "label") {
    message::CorrelationFilter label;
    label.label = "L1";
    rule.filter = label;
  }
  if (name == "act") {
    rule.filter = message::SqlText{"n >= 5", {}};
    rule.action = message::SqlText{"SET extra = 'x'", {}};
  }
  return rule;
}

// How many copies a subscription with these rules has of a message.
[[nodiscard]] inline std::size_t copies_of(std::int64_t number, const std::vector<message::RuleDescription>& rules) {
  std::size_t with_action = 0;
  bool plain = false;
  for (const message::RuleDescription& rule : rules)
    for (const KnownRule& known : known_rules)
      if (known.name == rule.name && known.selects(number)) {
        if (known.has_action) ++with_action;
        else plain = true;
      }
  return with_action + (plain ? 1 : 0);
}

}  // namespace baton::simulation
