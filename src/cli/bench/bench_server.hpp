// A server of one's own, on a store that goes away with it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/process.hpp"
#include "http/wire/client.hpp"

namespace baton::cli::bench {

struct BenchServer {
  TemporaryDirectory directory;
  Instance process;
  std::string url;
  std::unique_ptr<http::Client> client;
  std::vector<std::string> arguments;  // that it was started with
  [[nodiscard]] Result<> begin();

  // definition: the name and the text of a workflow's file; empty: none. more: further options of `baton
  // serve`.
  [[nodiscard]] Result<> start(const std::string& store,
                               const std::pair<std::string, std::string>& definition,
                               const std::vector<std::string>& more = {});
  // Kills it and starts it anew on the same store.
  [[nodiscard]] Result<> restart();
  [[nodiscard]] double resident_mib() const {
    return static_cast<double>(process.resident_bytes()) / (1 << 20);
  }
};

// The exit code of a bench, after saying what went wrong.
[[nodiscard]] int finish(const Result<>& done);

}  // namespace baton::cli::bench
