#include "core/workflow/definition/publish.hpp"

namespace baton::workflow {

std::expected<Publication, VersionExists> place_version(std::int32_t wanted, std::string_view text,
                                                        const std::optional<VersionText>& there,
                                                        const std::optional<VersionText>& latest) {
  const std::int32_t newest = latest ? latest->version : 0;
  const auto& same = wanted > 0 ? there : latest;
  if (same && same->text == text)
    return Publication{.version = same->version, .is_new = false, .is_latest = same->version == newest};
  if (wanted > 0 && there) return std::unexpected(VersionExists{newest + 1});
  const std::int32_t version = wanted > 0 ? wanted : newest + 1;
  return Publication{.version = version, .is_new = true, .is_latest = version > newest};
}

}  // namespace baton::workflow
