// Cuts a stream of bytes into lines of bounded length. A line that is longer loses its end and says so.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace baton::worker {

class Lines {
 public:
  explicit Lines(std::size_t line_bytes) : line_bytes_(line_bytes) {}

  template <class Take>
  void add(std::string_view bytes, Take take) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      const bool ends = end != std::string_view::npos;
      append(bytes.substr(0, end));
      bytes.remove_prefix(ends ? end + 1 : bytes.size());
      if (ends) give(take);
    }
  }
  // What came after the last line feed is a line too.
  template <class Take>
  void finish(Take take) {
    if (!line_.empty()) give(take);
  }

 private:
  void append(std::string_view bytes) {
    const std::size_t room = line_bytes_ - line_.size();
    is_cut_ = is_cut_ || bytes.size() > room;
    line_.append(bytes.substr(0, room));
  }
  template <class Take>
  void give(Take take) {
    std::string line = std::exchange(line_, {});
    if (line.ends_with('\r')) line.pop_back();
    if (std::exchange(is_cut_, false)) line += " ... (cut)";
    take(std::string_view(line));
  }

  std::size_t line_bytes_;
  std::string line_;
  bool is_cut_ = false;
};

}  // namespace baton::worker
