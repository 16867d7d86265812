// How much a data source may give, and how long it may take for it.
#pragma once

#include <chrono>
#include <cstddef>

namespace baton::scheduler {

struct Limits {
  std::size_t bytes = std::size_t{256} << 20;
  std::size_t rows = 1'000'000;
  std::size_t columns = 500;
  std::size_t cells = 20'000'000;    // each takes memory, also when it is empty
  std::chrono::seconds timeout{60};  // of a query
};

}  // namespace baton::scheduler
