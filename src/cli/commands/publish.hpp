// Definitions on their way to a server: workflows and runbooks are published, and refused, alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "cli/remote.hpp"
#include "cli/terminal/fields.hpp"

namespace baton::cli {

// What there is to say to people about one that was accepted; is_new: it was not there before.
using Afterwards = std::function<void(Remote& remote, const Fields& answer, bool is_new)>;

// What there is to say about one that was refused, before the reason is.
using WhenRefused = std::function<void(const std::string& file, const Fields& answer)>;

// One after the other; the worst outcome is the exit code. `target` is where they go, `name_key` what the
// answer calls their name.
[[nodiscard]] int publish_files(const RemoteOptions& options, const std::vector<std::string>& files,
                                const std::string& target, std::string_view name_key,
                                const Afterwards& afterwards = {}, const WhenRefused& when_refused = {});

// The server's answer to a wrong definition knows lines and columns: print them as compilers do.
void print_diagnostics(const std::string& file, const Fields& body, Diagnostic::Level level);
[[nodiscard]] bool is_invalid_definition(const Fields& body);

}  // namespace baton::cli
