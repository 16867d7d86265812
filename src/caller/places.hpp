// How many requests may be under way, together and to one origin. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

namespace baton::caller {

class Places {
 public:
  Places(std::size_t all_max, std::size_t origin_max) : all_max_(all_max), origin_max_(origin_max) {}

  [[nodiscard]] bool take(const std::string& origin);
  void give_back(const std::string& origin);
  [[nodiscard]] std::size_t taken() const;
  void close();  // no more are given

 private:
  const std::size_t all_max_, origin_max_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::size_t taken_ = 0;
  std::unordered_map<std::string, std::size_t> by_origin_;  // only those of which one is taken
};

}  // namespace baton::caller
