#include <libpq-fe.h>
#include <unistd.h>

#include <memory>

#include "scheduler/source_fixture.hpp"
#include "tests/support/listener.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::scheduler {
namespace {

using enum runbook::SourceType;

class PostgresSource : public SourceTest {
 protected:
  static void SetUpTestSuite() {
    if (!support::PostgresServer::available()) return;
    server_ = std::make_unique<support::PostgresServer>();
    execute(R"sql(
        CREATE TABLE people ("Upn" text, "Date" timestamptz, age int, ok boolean, aliases text[], doc jsonb);
        INSERT INTO people VALUES ('ann', '2026-03-01T20:00:00+02', 41, true, '{a,b}', '{"x": [1]}'),
                                  ('bob', NULL, NULL, false, NULL, NULL);
    )sql");
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!server_) GTEST_SKIP() << "PostgreSQL is not installed";
  }

  static void execute(const std::string& sql) {
    PGconn* connection = PQconnectdb(server_->url().c_str());
    PGresult* answer = PQexec(connection, sql.c_str());
    EXPECT_EQ(PQresultStatus(answer), PGRES_COMMAND_OK) << PQerrorMessage(connection);
    PQclear(answer);
    PQfinish(connection);
  }

  std::string ask(const std::string& query, const Limits& limits = {}) {
    return shown(fetch(postgres, server_->url(), query, limits));
  }

  static inline std::unique_ptr<support::PostgresServer> server_;
};

TEST_F(PostgresSource, a_value_is_a_text_a_number_a_boolean_or_missing) {
  EXPECT_EQ(
      ask("SELECT * FROM people ORDER BY 1"),
      "Upn,Date,age,ok,aliases,doc|ann,2026-03-01 18:00:00+00,=41,=true,{a,b},{\"x\": [1]}|bob,-,-,=false,-,-");
  EXPECT_EQ(ask("SELECT 10.50::numeric a, 1e20::float8 b, 7::int2 c, 'NaN'::numeric d, '41'::text e, "
                "12345678901234567890123::numeric f, 9::bigint g"),
            "a,b,c,d,e,f,g|=10.50,=1e+20,=7,NaN,41,12345678901234567890123,=9");
  EXPECT_EQ(ask("SELECT \"Upn\" FROM people WHERE age > 100; "), "Upn");
}

TEST_F(PostgresSource, both_forms_of_a_connection_work) {
  EXPECT_EQ(shown(fetch(postgres, server_->socket_url(), "SELECT 1 AS a")), "a|=1");
}

TEST_F(PostgresSource, a_query_can_only_read) {
  for (const std::string query :
       {"DELETE FROM people RETURNING age", "DROP TABLE people", "COMMIT; DROP TABLE people",
        "WITH gone AS (DELETE FROM people RETURNING age) SELECT * FROM gone", "SELECT nextval('nothing')",
        "COMMIT", "BEGIN", "COPY people TO STDOUT", "", "SELECT"})
    EXPECT_EQ(code(fetch(postgres, server_->url(), query)), Code::invalid) << query;
  EXPECT_EQ(ask("SELECT count(*) AS n FROM people"), "n|=2");
}

TEST_F(PostgresSource, wrong_queries_are_told) {
  EXPECT_EQ(ask("SELECT * FROM nowhere"),
            "connection 'WAVES': PostgreSQL: relation \"nowhere\" does not exist");
  EXPECT_EQ(ask("SELECT age, age FROM people"), "connection 'WAVES': column 'age' is there twice");
}

TEST_F(PostgresSource, limits_hold) {
  const std::string many = "SELECT generate_series(1, 100000000) AS i";
  EXPECT_EQ(ask(many, {.rows = 1000}), "connection 'WAVES': too many rows; at most 1000 are read");
  EXPECT_EQ(ask(many, {.bytes = 1000}),
            "connection 'WAVES': row 370, column 'i': too much text; at most 1000 bytes are read");
  const auto late =
      fetch(postgres, server_->url(), "SELECT pg_sleep(30)", {.timeout = std::chrono::seconds{1}});
  EXPECT_EQ(shown(late), "connection 'WAVES': PostgreSQL: canceling statement due to statement timeout");
  EXPECT_EQ(code(late), Code::unavailable);
}

TEST_F(PostgresSource, a_query_ends_when_the_server_stops) {
  EXPECT_TRUE(ends_when_interrupted(postgres, server_->url(), "SELECT pg_sleep(30)"));
}

TEST_F(PostgresSource, a_connection_that_is_not_answered_ends_when_the_server_stops) {
  const support::Listener listener = support::listen_on_loopback(1);  // takes connections, says nothing
  const std::string url = fmt::format("postgres://joe@127.0.0.1:{}/people", listener.port);
  EXPECT_TRUE(ends_when_interrupted(postgres, url, "SELECT 1"));
  EXPECT_EQ(shown(fetch(postgres, url + "?connect_timeout=2", "SELECT 1")),
            "connection 'WAVES': cannot connect to PostgreSQL: no answer in time");
  ::close(listener.fd);
}

TEST_F(PostgresSource, an_error_in_the_middle_leaves_no_half_table) {
  EXPECT_EQ(ask("SELECT 10 / (5 - i) AS x FROM generate_series(1, 10) AS n(i)"),
            "connection 'WAVES': PostgreSQL: division by zero");
}

TEST_F(PostgresSource, errors_hold_nothing_of_the_connection) {
  const auto quiet = [&](const std::string& url, const std::string& secret) {
    const auto table = fetch(postgres, url, "SELECT 1");
    EXPECT_EQ(shown(table).find(secret), std::string::npos) << shown(table);
    return shown(table);
  };
  EXPECT_EQ(quiet("some secret words", "secret"),
            "connection 'WAVES': not a PostgreSQL connection, such as postgres://USER@HOST/DATABASE");
  EXPECT_EQ(quiet("postgres://joe:hunter2@127.0.0.1:1/people", "hunter2"),
            "connection 'WAVES': cannot connect to PostgreSQL: Connection refused");
  quiet("postgres://joe:hunter2@127.0.0.1:1/people", "127.0.0.1");
  quiet(server_->url("no_such_database"), "no_such_database");
}

}  // namespace
}  // namespace baton::scheduler
