// The parser as a whole, apart from running what it chose, so that tests can look at it.
#pragma once

#include <memory>
#include <string>

#include "cli/commands/commands.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace baton::cli {

[[nodiscard]] std::unique_ptr<CLI::App> make_app(Action& chosen);

// What is wrong with the line, in words: names the unknown word and the nearest known one.
[[nodiscard]] std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace baton::cli
