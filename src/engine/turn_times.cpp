#include "engine/turn_times.hpp"

#include <string_view>

namespace baton::engine {
namespace {

std::string in_ms(TurnTimes::Clock::duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count()) + " ms";
}

// Without its namespace, as the compiler says it: "… [with T = baton::Heartbeat; …".
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

}  // namespace

std::string TurnTimes::described(const Item& item) {
  std::string text(std::visit([]<class C>(const C&) { return type_name<C>(); }, item.command));
  std::visit(
      [&](const auto& c) {
        if constexpr (requires { c.tenant.value; })
          text += " of tenant '" + c.tenant.value + "'";
        else if constexpr (requires { c.tenant->value; })
          text += c.tenant ? " of tenant '" + c.tenant->value + "'" : "";
      },
      item.command);
  return text + ", " + described(subject_of(item.command));
}

std::string TurnTimes::described(const Timer& timer) {
  std::string text = "timer of " + described(timer.subject);
  if (!timer.what.empty()) text += ", '" + timer.what + "'";
  return text;
}

std::string TurnTimes::described(const Subject& subject) {
  return std::string(name(subject.type)) + " " + subject.id;
}

std::string TurnTimes::text() const {
  std::string text = std::to_string(messages) + " messages, " + std::to_string(timers) + " timers; load " +
                     in_ms(load) + ", decide " + in_ms(decide) + ", hand out " + in_ms(hand_out) +
                     ", commit " + in_ms(commit);
  if (!about_.empty()) text += "; longest decision " + in_ms(longest_) + ": " + about_;
  return text;
}

}  // namespace baton::engine
