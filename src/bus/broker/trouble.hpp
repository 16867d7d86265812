// Why there is no connection to a broker, or no token for it.
#pragma once

#include <string>
#include <utility>

namespace baton::bus {

struct Trouble {
  Trouble() = default;
  Trouble(std::string said) : name(said), text(std::move(said)) {}
  Trouble(std::string called, std::string said) : name(std::move(called)), text(std::move(said)) {}

  // A condition or a status: of two troubles only the name says whether they are the same, as Azure puts a number and a time into its texts.
  std::string name;
  std::string text;
};

}  // namespace baton::bus
