#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <memory>
#include <vector>

#include "base/text.hpp"
#include "scheduler/readers.hpp"
#include "scheduler/table_builder.hpp"

namespace baton::scheduler {
namespace {

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Session = std::unique_ptr<PGconn, Finish>;
using Answer = std::unique_ptr<PGresult, Clear>;
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

using Steady = std::chrono::steady_clock;

constexpr Oid bool_type = 16;
constexpr std::array<Oid, 6> number_types = {20, 21, 23, 700, 701, 1700};  // int8, int2, int4, float4, float8, numeric

runbook::Cell cell_of(Oid type, std::string_view text) {
  if (type == bool_type) return runbook::Cell::boolean(text == "t");
  const bool is_number = std::ranges::find(number_types, type) != number_types.end();
  return is_number ? runbook::Cell::number(text) : runbook::Cell(text);
}

// libpq says where it tried to connect to: what is behind that, without anything that the URL says.
std::string connect_error(std::string_view message, const PQconninfoOption* options) {
  constexpr std::string_view place_end = "failed: ";
  if (const auto at = message.find(place_end); at != message.npos)
    message.remove_prefix(at + place_end.size());
  std::string text(trimmed(message.substr(0, message.find('\n'))));
  for (; options->keyword != nullptr; ++options) {
    const std::string_view value = options->val == nullptr ? std::string_view{} : options->val;
    if (value.size() < 3) continue;
    for (auto at = text.find(value); at != text.npos; at = text.find(value, at + 3))
      text.replace(at, value.size(), "***");
  }
  return text;
}

Code code_of(std::string_view sqlstate) {
  // Connection, rollback, resources, locks, operator intervention (also the timeout), system error.
  for (const std::string_view passing : {"08", "40", "53", "55", "57", "58"}) {
    if (sqlstate.starts_with(passing)) return Code::unavailable;
  }
  return Code::invalid;
}

std::unexpected<Error> error_of(const PGconn* session, const PGresult* answer) {
  const char* state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr || message == nullptr)
    return fail(Code::unavailable,
                fmt::format("PostgreSQL: the connection was lost: {}", trimmed(PQerrorMessage(session))));
  return fail(code_of(state), fmt::format("PostgreSQL: {}", message));
}

std::unexpected<Error> interrupted() { return fail(Code::unavailable, "PostgreSQL: the server is stopping"); }

// False: its time is over, or it is to stop.
bool wait_for(const PGconn* session, short events, Steady::time_point until, const std::stop_token& stop) {
  constexpr int slice_ms = 100;
  while (!stop.stop_requested() && Steady::now() < until) {
    pollfd ready{PQsocket(session), events, 0};
    if (poll(&ready, 1, slice_ms) != 0) return true;  // an error is told by whoever reads next
  }
  return false;
}

// As PQgetResult(), which cannot be interrupted. The session is of no use afterwards if it was.
Result<Answer> next_answer(PGconn* session, const std::stop_token& stop) {
  while (PQisBusy(session) != 0) {
    if (!wait_for(session, POLLIN, Steady::time_point::max(), stop)) return interrupted();
    if (PQconsumeInput(session) == 0) break;  // PQgetResult() says why
  }
  return Answer(PQgetResult(session));
}

// libpq has none for a connection that it does not wait for itself. Of several hosts those that do not answer
// are given up by the system, after tcp_user_timeout.
std::chrono::seconds connect_timeout(const PQconninfoOption* options) {
  std::int64_t seconds = 10, hosts = 1;
  for (; options->keyword != nullptr; ++options) {
    const std::string_view name = options->keyword, value = options->val == nullptr ? "" : options->val;
    if (name == "connect_timeout") std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (name == "host" || name == "hostaddr")
      hosts = std::max<std::int64_t>(hosts, 1 + std::ranges::count(value, ','));
  }
  seconds = std::clamp<std::int64_t>(seconds, 2, 60);
  return std::chrono::seconds{hosts == 1 ? seconds : hosts * (seconds + 20)};
}

Result<Session> connect(const std::string& url, const std::stop_token& stop) {
  // Checked before, because the error of a wrong one quotes it.
  const Options options(PQconninfoParse(url.c_str(), nullptr));
  if (!options)
    return fail(Code::invalid, "not a PostgreSQL connection, such as postgres://USER@HOST/DATABASE");
  constexpr std::array<std::array<const char*, 2>, 6> defaults = {{{"fallback_application_name", "baton"},
                                                                   {"client_encoding", "UTF8"},
                                                                   {"keepalives_idle", "10"},
                                                                   {"keepalives_interval", "5"},
                                                                   {"keepalives_count", "3"},
                                                                   {"tcp_user_timeout", "20000"}}};
  std::vector<const char*> names, values;
  for (const auto& [name, value] : defaults) names.push_back(name), values.push_back(value);
  names.insert(names.end(), {"dbname", nullptr});
  values.insert(values.end(), {url.c_str(), nullptr});
  Session session(PQconnectStartParams(names.data(), values.data(), 1));
  const auto until = Steady::now() + connect_timeout(options.get());
  for (auto next = PGRES_POLLING_WRITING; PQstatus(session.get()) != CONNECTION_BAD;
       next = PQconnectPoll(session.get())) {
    if (next == PGRES_POLLING_OK || next == PGRES_POLLING_FAILED) break;
    if (stop.stop_requested()) return interrupted();
    if (!wait_for(session.get(), next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until, stop))
      return stop.stop_requested()
                 ? interrupted()
                 : fail(Code::unavailable, "cannot connect to PostgreSQL: no answer in time");
  }
  if (PQstatus(session.get()) != CONNECTION_OK) {
    return fail(Code::unavailable, fmt::format("cannot connect to PostgreSQL: {}",
                                               connect_error(PQerrorMessage(session.get()), options.get())));
  }
  PQsetNoticeProcessor(
      session.get(), [](void*, const char*) {}, nullptr);
  return session;
}

Result<> begin(PGconn* session, const Limits& limits, const std::stop_token& stop) {
  const std::string settings = fmt::format(
      "SET client_encoding = 'UTF8'; SET timezone = 'UTC'; SET datestyle = 'ISO'; "
      "SET lock_timeout = '10s'; SET statement_timeout = '{}s'; BEGIN READ ONLY",
      limits.timeout.count());
  if (PQsendQuery(session, settings.c_str()) != 1)
    return fail(Code::unavailable, fmt::format("PostgreSQL: {}", trimmed(PQerrorMessage(session))));
  while (true) {
    TRY_ASSIGN(const Answer answer, next_answer(session, stop));
    if (!answer) return {};
    if (PQresultStatus(answer.get()) != PGRES_COMMAND_OK) return error_of(session, answer.get());
  }
}

Result<> add_rows(const PGresult* answer, TableBuilder& table) {
  for (int i = static_cast<int>(table.columns()); i < PQnfields(answer); ++i)
    TRY(table.add_column(PQfname(answer, i)));
  for (int row = 0; row < PQntuples(answer); ++row) {
    TRY(table.begin_row());
    for (int i = 0; i < PQnfields(answer); ++i) {
      if (PQgetisnull(answer, row, i) != 0) continue;
      const std::string_view text(PQgetvalue(answer, row, i),
                                  static_cast<std::size_t>(PQgetlength(answer, row, i)));
      TRY(table.set(static_cast<std::size_t>(i), cell_of(PQftype(answer, i), text)));
    }
  }
  return {};
}

// A server does not notice that nobody listens any more while it computes.
void cancel(PGconn* session) {
  char ignored[256];
  PGcancel* request = PQgetCancel(session);
  if (request == nullptr) return;
  PQcancel(request, ignored, sizeof ignored);
  PQfreeCancel(request);
}

}  // namespace

// Whoever stops does not wait until the server has heard of it: the timeout of the statement ends it there.
Result<SourceTable> read_postgres(const std::string& url, const std::string& query, const Limits& limits,
                                  const std::stop_token& stop) {
  TRY_ASSIGN(const Session session, connect(url, stop));
  TRY(begin(session.get(), limits, stop));
  // With parameters, although there are none: this protocol takes one statement only, so that nothing can end
  // the transaction and go on. Row by row, so that the limits hold before everything is in memory.
  const bool sent =
      PQsendQueryParams(session.get(), query.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) == 1 &&
      PQsetSingleRowMode(session.get()) == 1;
  if (!sent)
    return fail(Code::unavailable, fmt::format("PostgreSQL: {}", trimmed(PQerrorMessage(session.get()))));
  TableBuilder table(limits);
  while (true) {
    TRY_ASSIGN(const Answer answer, next_answer(session.get(), stop));
    if (!answer) break;
    const auto status = PQresultStatus(answer.get());
    if (status == PGRES_EMPTY_QUERY) return fail(Code::invalid, "the query is empty");
    if (status == PGRES_COMMAND_OK || status == PGRES_COPY_OUT || status == PGRES_COPY_IN)
      return fail(Code::invalid, "the query answers no rows");
    if (status != PGRES_TUPLES_OK && status != PGRES_SINGLE_TUPLE)
      return error_of(session.get(), answer.get());
    if (auto added = add_rows(answer.get(), table); !added) {
      cancel(session.get());
      return std::unexpected(std::move(added).error());
    }
  }
  if (table.columns() == 0) return fail(Code::invalid, "the query answers no columns");
  return table.finish();
}

}  // namespace baton::scheduler
