// What becomes of a text that is published: versions never change, so it is one that is there already, the next
// one, or a mistake. Pure.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>

namespace baton::workflow {

// A version that was published before.
struct VersionText {
  std::int32_t version = 0;
  std::string_view text;
};

struct Publication {
  std::int32_t version = 0;
  bool is_new = false;     // false: it is there, with this very text, and nothing is to be stored
  bool is_latest = false;  // no version is above it
  friend bool operator==(const Publication&, const Publication&) = default;
};

// The version that the text names was published with another text.
struct VersionExists {
  std::int32_t next_free = 0;
};

// wanted: the version that the text names; 0: none, so that it is the latest again if that has the same text, else
// the next. `there` is the wanted version, if it was published.
[[nodiscard]] std::expected<Publication, VersionExists> place_version(std::int32_t wanted, std::string_view text,
                                                                      const std::optional<VersionText>& there,
                                                                      const std::optional<VersionText>& latest);

}  // namespace baton::workflow
