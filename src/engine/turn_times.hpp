// Where the time of a turn went, for whoever asks why it took long. Of the engine's thread.
#pragma once

#include <chrono>
#include <string>

#include "engine/kind.hpp"

namespace baton::engine {

class TurnTimes {
 public:
  using Clock = std::chrono::steady_clock;
  Clock::duration load{}, decide{}, hand_out{}, commit{};
  std::size_t messages = 0, timers = 0;

  // A decision that began then is over.
  void decided(Clock::time_point began, const Item& item) { note(began, [&] { return described(item); }); }
  void decided(Clock::time_point began, const Timer& timer) { note(began, [&] { return described(timer); }); }

  // One line: how much there was, what took how long, and the longest decision when it took long.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] static std::string described(const Item& item);
  [[nodiscard]] static std::string described(const Timer& timer);
  [[nodiscard]] static std::string described(const Subject& subject);
  template <class Describe>
  void note(Clock::time_point began, Describe&& describe) {
    constexpr std::chrono::milliseconds worth_telling{100};
    const auto took = Clock::now() - began;
    if (took <= longest_) return;
    longest_ = took;
    if (took > worth_telling) about_ = describe();
  }

  Clock::duration longest_{};
  std::string about_;
};

}  // namespace baton::engine
