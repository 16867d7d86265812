// What all streams share. Belongs to the I/O thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

namespace baton::http {

// How many are open, and whose.
class OpenStreams {
 public:
  // Answers how many there are then.
  std::size_t open(const std::string& tenant) {
    ++by_tenant_[tenant];
    return ++count_;
  }
  std::size_t close(const std::string& tenant) {
    if (--by_tenant_[tenant] == 0) by_tenant_.erase(tenant);
    return --count_;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t count(const std::string& tenant) const {
    const auto it = by_tenant_.find(tenant);
    return it == by_tenant_.end() ? 0 : it->second;
  }
  // How long one that was just served waits for more to send with the next. All together are served about
  // 10,000 times a second, however many there are and however much happens: what is left of this thread is
  // for requests.
  [[nodiscard]] std::chrono::microseconds rest_time() const {
    const std::chrono::microseconds share{100 * count_};
    return share < std::chrono::milliseconds{2} ? std::chrono::microseconds{0} : share;
  }

 private:
  std::map<std::string, std::size_t> by_tenant_;
  std::size_t count_ = 0;
};

// Changes as they are sent: what many streams send is written once.
class EventTexts {
 public:
  struct Place {
    std::int64_t commit = 0;
    std::size_t place = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // write: std::string& -> void. The text is good until the next call.
  template <class Write>
  const std::string& of(Place place, Write&& write) {
    const auto it = texts_.find(place);
    if (it != texts_.end()) return it->second;
    if (bytes_ > bytes_max) texts_.clear(), bytes_ = 0;
    std::string& text = texts_[place];
    write(text);
    bytes_ += text.size() + sizeof(Place) + sizeof text;
    return text;
  }

 private:
  static constexpr std::size_t bytes_max = 4 << 20;  // then it begins anew
  struct Hash {
    std::size_t operator()(const Place& place) const {
      return std::hash<std::uint64_t>()((static_cast<std::uint64_t>(place.commit) << 20U) ^ place.place);
    }
  };
  std::unordered_map<Place, std::string, Hash> texts_;
  std::size_t bytes_ = 0;
};

}  // namespace baton::http
