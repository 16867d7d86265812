// One SQL connection, the same for both dialects: what differs is how many parameter sets one statement takes
// at a time. SQLite runs a prepared statement once per set; PostgreSQL takes the sets of a statement as one
// array per parameter, and all the statements of a run in one round trip. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace baton::store {

enum class Dialect { sqlite, postgres };
enum class Type { text, json, integer, time, bytes };  // a flag is an integer, 0 or 1

// A parameter. Text is borrowed until the run is over.
using Value = std::variant<std::monostate, std::int64_t, Time, std::string_view>;

struct Statement {
  std::string sql;  // parameters are ?1, ?2, … in both dialects; the text holds no other question mark
  std::vector<Type> parameters;
  bool arrays = false;  // PostgreSQL only: each parameter is an array with one element per set
  // Each set must change exactly one row, else the run fails with Query::missed. PostgreSQL checks this inside
  // the statement (see statements.hpp), because the statements behind it are already on their way.
  bool exact = false;
};

// A row of an answer; valid only inside the call that gets it. A cell of another type than asked for reads as
// zero or empty.
class RowView {
 public:
  virtual ~RowView() = default;
  [[nodiscard]] virtual bool is_null(int column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(int column) const = 0;
  [[nodiscard]] virtual std::string_view text(int column) const = 0;
  [[nodiscard]] virtual std::string bytes(int column) const = 0;
};

// A statement with all its parameter sets.
struct Query {
  const Statement* statement = nullptr;
  std::size_t sets = 1;
  std::function<void(std::size_t set, std::span<Value> out)> fill;
  std::function<Result<>(const RowView&)> row;  // for each row of the answer; may be empty
  Error missed;                                 // the answer when an exact statement did not find its row
};

enum class Mode {
  read,   // all queries see one snapshot
  write,  // one transaction: all or nothing, durable when it answers
  write_lazily,  // the same, but durable only with the next one that is
};

class Connection {
 public:
  virtual ~Connection() = default;

  // Runs the queries in order. Inside a transaction that script() has begun it neither begins nor ends one.
  [[nodiscard]] virtual Result<> run(std::span<const Query> queries, Mode mode) = 0;

  // Runs statements without parameters and without answers.
  [[nodiscard]] virtual Result<> script(const std::string& sql) = 0;

  // Bytes that are free where the data lies; none: it cannot tell.
  [[nodiscard]] virtual std::optional<std::uint64_t> room() const { return std::nullopt; }

  // Nothing will succeed on this connection any more.
  [[nodiscard]] virtual bool broken() const = 0;
};

using Connect = std::function<Result<std::unique_ptr<Connection>>()>;

// The outcome of a run; a connection that is of no use any more is dropped. After an unknown commit nothing may be read or
// written on the strength of what was believed before: whoever has the connections opens them all anew.
inline Result<> kept(std::unique_ptr<Connection>& connection, Result<> outcome) {
  const bool is_over = !outcome && (outcome.error().code == Code::unknown || outcome.error().code == Code::fenced);
  if (is_over || connection->broken()) connection.reset();
  return outcome;
}

}  // namespace baton::store
