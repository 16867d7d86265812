// How a command of a group is declared: its options are shared by the group, and what it does is a function
// of them.
#pragma once

#include <memory>
#include <string>

#include "cli/commands/commands.hpp"
#include "cli/remote.hpp"

namespace baton::cli {

// `Options` has a `remote`, for --server and its kind.
template <class Options>
Parser add_command(Parser parent, Action& chosen, const std::shared_ptr<Options>& options,
                   const std::string& name, const std::string& help, int (*act)(const Options&)) {
  Parser command = parent.add_subcommand(name, help);
  add_remote_options(command, options->remote);
  command.callback([options, &chosen, act] { chosen = [options, act] { return act(*options); }; });
  return command;
}

}  // namespace baton::cli
