#include "store/postgres/connection.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"
#include "store/postgres/parameters.hpp"

namespace baton::store::postgres {
namespace {

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Session = std::unique_ptr<PGconn, Finish>;
using Answer = std::unique_ptr<PGresult, Clear>;

std::string message_of(const PGconn* session) { return std::string(trimmed(PQerrorMessage(session))); }

std::string_view field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string_view{} : text;
}

Code code_of(std::string_view sqlstate, Mode mode) {
  if (sqlstate == "53100") return Code::full;
  const std::string_view kind = sqlstate.substr(0, 2);
  if (kind == "23") return Code::conflict;
  // A deadlock, a lock that was not to be had in time: another program is at the same rows. The server itself
  // is there, and everything else can go on. What is written lazily is the same when it is tried again.
  if (mode != Mode::read && (sqlstate == "40001" || sqlstate == "40P01" || sqlstate == "55P03"))
    return mode == Mode::write_lazily ? Code::busy : Code::conflict;
  // Connection, read-only server, rollback, resources, locks, operator intervention, system error: may work
  // later.
  for (const std::string_view passing : {"08", "25", "40", "53", "55", "57", "58"}) {
    if (kind == passing) return Code::unavailable;
  }
  return Code::invalid;
}

Error error_of(const PGresult* result, Mode mode) {
  return {code_of(field(result, PG_DIAG_SQLSTATE), mode),
          "PostgreSQL: " + std::string(field(result, PG_DIAG_MESSAGE_PRIMARY))};
}

class Row final : public RowView {
 public:
  Row(const PGresult* result, int row) : result_(result), row_(row) {}
  bool is_null(int column) const override { return PQgetisnull(result_, row_, column) != 0; }
  std::int64_t integer(int column) const override {
    std::int64_t number = 0;
    const auto digits = text(column);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }
  std::string_view text(int column) const override {
    return {PQgetvalue(result_, row_, column), static_cast<std::size_t>(PQgetlength(result_, row_, column))};
  }
  std::string bytes(int column) const override {  // told as text: \\x and two digits for each
    const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
    const std::string_view digits = text(column).substr(std::min<std::size_t>(2, text(column).size()));
    std::string decoded(digits.size() / 2, '\0');
    for (std::size_t i = 0; i < decoded.size(); ++i)
      decoded[i] = static_cast<char>(value(digits[2 * i]) << 4 | value(digits[2 * i + 1]));
    return decoded;
  }

 private:
  const PGresult* result_;
  int row_;
};

// Arrays are cut at this size: it bounds the memory of a run whose values are large, and keeps far below the
// protocol's limit of 1 GiB.
constexpr std::size_t array_bytes_max = 16 << 20;

class PostgresConnection final : public Connection {
 public:
  explicit PostgresConnection(Session session) : session_(std::move(session)) {}

  Result<> run(std::span<const Query> queries, Mode mode) override {
    if (broken()) return fail(Code::unavailable, "PostgreSQL: the connection is lost");
    const bool own = PQtransactionStatus(session_.get()) == PQTRANS_IDLE &&
                     (mode != Mode::read || queries.size() > 1 || queries[0].sets > 1);
    sent_.clear();
    bool alive = PQenterPipelineMode(session_.get()) == 1;
    if (own) {
      alive = alive &&
              send_plain(mode == Mode::read ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN");
      if (mode == Mode::write_lazily) alive = alive && send_plain("SET LOCAL synchronous_commit = off");
    }
    for (const Query& query : queries) alive = alive && send_query(query);
    if (own) alive = alive && send_plain("COMMIT");
    alive = alive && PQpipelineSync(session_.get()) == 1;
    return alive ? receive(mode, own) : lost(mode);
  }

  Result<> script(const std::string& sql) override {
    const Answer answer(PQexec(session_.get(), sql.c_str()));
    const auto status = PQresultStatus(answer.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
    if (broken()) return lost(Mode::read);
    return std::unexpected(error_of(answer.get(), Mode::read));
  }

  bool broken() const override { return broken_ || PQstatus(session_.get()) != CONNECTION_OK; }

 private:
  // What was sent and is to be answered, in order.
  struct Sent {
    const Query* query = nullptr;
    const std::string* prepares = nullptr;  // the SQL, if this is its preparation
    bool commits = false;
  };

  bool send_plain(const char* sql) {
    sent_.push_back({nullptr, nullptr, std::string_view(sql) == "COMMIT"});
    return PQsendQueryParams(session_.get(), sql, 0, nullptr, nullptr, nullptr, nullptr, 0) == 1;
  }

  bool send_query(const Query& query) {
    const Statement& statement = *query.statement;
    std::vector<Parameter> parameters;
    parameters.reserve(statement.parameters.size());
    for (const Type type : statement.parameters) parameters.emplace_back(type, statement.arrays);
    if (!send_prepare(statement, parameters)) return false;

    std::vector<Value> values(parameters.size());
    for (std::size_t set = 0; set < query.sets; ++set) {
      if (query.fill) query.fill(set, values);
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        parameters[i].add(values[i]);
        bytes += parameters[i].size();
      }
      const bool last = set + 1 == query.sets;
      if (statement.arrays && !last && bytes < array_bytes_max) continue;
      if (!send_execute(query, parameters)) return false;
      for (Parameter& parameter : parameters) parameter.clear();
    }
    return true;
  }

  // A statement is known by its text: the server knows it by a number, which is given once per connection.
  bool send_prepare(const Statement& statement, const std::vector<Parameter>& parameters) {
    const auto [entry, is_new] = names_.try_emplace(statement.sql, "s" + std::to_string(names_.size()));
    if (!is_new && prepared_.contains(entry->first)) return true;
    if (std::ranges::any_of(sent_, [&](const Sent& sent) { return sent.prepares == &entry->first; }))
      return true;
    std::vector<Oid> types;
    for (const Parameter& parameter : parameters) types.push_back(parameter.oid());
    std::string sql = statement.sql;
    std::ranges::replace(sql, '?', '$');
    sent_.push_back({nullptr, &entry->first, false});
    return PQsendPrepare(session_.get(), entry->second.c_str(), sql.c_str(), static_cast<int>(types.size()),
                         types.data()) == 1;
  }

  bool send_execute(const Query& query, std::vector<Parameter>& parameters) {
    std::vector<const char*> data;
    std::vector<int> sizes;
    for (Parameter& parameter : parameters) {
      data.push_back(parameter.finish());
      sizes.push_back(static_cast<int>(parameter.size()));
    }
    const std::vector<int> binary(parameters.size(), 1);
    sent_.push_back({&query, nullptr, false});
    return PQsendQueryPrepared(session_.get(), names_.at(query.statement->sql).c_str(),
                               static_cast<int>(data.size()), data.data(), sizes.data(), binary.data(),
                               0) == 1;
  }

  Result<> receive(Mode mode, bool own) {
    Result<> outcome;
    for (const Sent& sent : sent_) {
      while (const Answer answer{PQgetResult(session_.get())}) {
        auto done = take_answer(sent, answer.get(), mode);
        if (!done && outcome) outcome = std::move(done);
      }
      if (PQstatus(session_.get()) != CONNECTION_OK) return lost(mode);
    }
    const Answer sync(PQgetResult(session_.get()));
    if (PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC || PQexitPipelineMode(session_.get()) != 1)
      return lost(mode);
    // An error skips everything behind it, also the end of the transaction.
    if (own && PQtransactionStatus(session_.get()) != PQTRANS_IDLE && !script("ROLLBACK")) broken_ = true;
    return outcome;
  }

  Result<> take_answer(const Sent& sent, const PGresult* answer, Mode mode) {
    switch (PQresultStatus(answer)) {
      case PGRES_COMMAND_OK:
        // A transaction that cannot commit says so by another word than COMMIT, not by an error.
        if (sent.commits && std::string_view(PQcmdStatus(const_cast<PGresult*>(answer))) != "COMMIT") {
          return fail(Code::unavailable, "PostgreSQL: the transaction was rolled back");
        }
        if (sent.prepares != nullptr) prepared_.insert(*sent.prepares);
        return {};
      case PGRES_TUPLES_OK:
        if (sent.query != nullptr && sent.query->row) {
          for (int row = 0; row < PQntuples(answer); ++row) TRY(sent.query->row(Row(answer, row)));
        }
        return {};
      case PGRES_PIPELINE_ABORTED: return fail(Code::unavailable, "PostgreSQL: skipped after an error");
      default:
        if (sent.query != nullptr && sent.query->statement->exact &&
            field(answer, PG_DIAG_SQLSTATE) == "22012") {
          return std::unexpected(sent.query->missed);
        }
        return std::unexpected(error_of(answer, mode));
    }
  }

  // All of a transaction is on its way at once, so nobody can say whether the server has seen its end.
  std::unexpected<Error> lost(Mode mode) {
    broken_ = true;
    return fail(mode == Mode::read ? Code::unavailable : Code::unknown,
                "PostgreSQL: the connection was lost: " + message_of(session_.get()));
  }

  Session session_;
  std::unordered_map<std::string, std::string> names_;
  std::unordered_set<std::string> prepared_;  // those whose preparation was confirmed
  std::vector<Sent> sent_;
  bool broken_ = false;
};

// Every statement of ours finds rows by key or by the leading columns of an index, a few at a time or in
// order. The planner, which guesses before the first statistics that a new table is small, would rather read
// all of it, and keep that plan while the table grows. synchronous_commit is raised only if it is off: a
// server whose commits wait for a standby shall keep doing so. The timeouts make a writer that hangs let go
// of the row that its successor waits for. The server notices within about half a minute that a client has vanished,
// and not after two hours, through which it would keep the locks of a transaction that arrived in part. Of what it does not
// know, old as it may be, nothing is set; on a Unix socket it ignores these.
constexpr const char* session_settings = R"sql(
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET bytea_output = 'hex'; SET jit = off; SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET lock_timeout = '10s'; SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '30s';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
SELECT set_config(parameter, value, false) FROM (VALUES ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'),
  ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '20000')) AS s(parameter, value)
  WHERE current_setting(parameter, true) IS NOT NULL;
)sql";

Result<Session> open_session(const std::string& url) {
  // A server that has vanished is noticed within about half a minute. What the URL says comes later and wins.
  constexpr std::array<std::array<const char*, 2>, 8> defaults = {{{"fallback_application_name", "baton"},
                                                                   {"client_encoding", "UTF8"},
                                                                   {"connect_timeout", "10"},
                                                                   {"keepalives_idle", "10"},
                                                                   {"keepalives_interval", "5"},
                                                                   {"keepalives_count", "3"},
                                                                   {"tcp_user_timeout", "20000"},
                                                                   {"target_session_attrs", "read-write"}}};
  std::vector<const char*> names, values;
  for (const auto& [name, value] : defaults) names.push_back(name), values.push_back(value);
  names.insert(names.end(), {"dbname", nullptr});
  values.insert(values.end(), {url.c_str(), nullptr});
  Session session(PQconnectdbParams(names.data(), values.data(), 1));
  if (PQstatus(session.get()) != CONNECTION_OK)
    return fail(Code::unavailable, message_of(session.get()));
  // Notices, such as that a table exists already, are for people at a prompt.
  PQsetNoticeProcessor(session.get(), [](void*, const char*) {}, nullptr);
  const char* encoding = PQparameterStatus(session.get(), "server_encoding");
  if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
    return fail(Code::invalid, "the database has encoding " + std::string(encoding == nullptr ? "?" : encoding) +
                                   "; it must be UTF8");
  }
  return session;
}

Result<std::unique_ptr<Connection>> open_connection(const std::string& url) {
  TRY_ASSIGN(auto session, open_session(url));
  auto connection = std::make_unique<PostgresConnection>(std::move(session));
  TRY(connection->script(session_settings));
  return connection;
}

}  // namespace

Result<std::unique_ptr<Connection>> connect(const std::string& url) {
  // libpq's message names the server; the URL itself may hold a password.
  auto connection = open_connection(url);
  if (!connection)
    return fail(connection.error().code,
                "cannot open the PostgreSQL database: " + connection.error().message);
  return connection;
}

}  // namespace baton::store::postgres
