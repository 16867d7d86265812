// Names to addresses, on threads of its own: the resolver of the system blocks, and Asio's has one thread for
// all, so that one slow name server would hold up everybody. Names that are asked for while they are being
// looked up share one lookup; so a slow name takes one thread, however many requests wait for it. Those who
// ask take turns, and nobody has more threads than are free: whoever asks for a thousand names whose
// server is slow holds up nobody else. Nothing is kept. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/ip_address.hpp"

namespace baton {

// Blocks. The errors are for people.
using Resolve = std::function<Result<std::vector<IpAddress>>(const std::string& host)>;
[[nodiscard]] Result<std::vector<IpAddress>> resolve_by_system(const std::string& host);

class Lookups {
 public:
  using Found = Result<std::vector<IpAddress>>;

  Lookups(Resolve resolve, std::size_t threads_max);
  // Lookups that do not end within a second are left behind; they touch nothing but their own state.
  ~Lookups();
  Lookups(const Lookups&) = delete;
  Lookups& operator=(const Lookups&) = delete;

  // found is called on a thread of this object, and must only pass the answer on; it may not be called if
  // nobody came to look before `until`.
  void find(const std::string& for_whom, const std::string& host, std::chrono::steady_clock::time_point until,
            std::function<void(const Found&)> found);
  // After it nobody is called any more.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace baton
