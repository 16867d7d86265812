// What a data source says, before anything is made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::runbook {

struct SourceTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;  // as many cells as there are columns
  // Of a file: on which line each row begins, as an editor shows it. Empty: the rows have numbers only.
  std::vector<std::uint32_t> lines = {};
};

}  // namespace baton::runbook
