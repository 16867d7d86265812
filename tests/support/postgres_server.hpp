// A throw-away PostgreSQL server of the installed package, in a temporary directory, on a free loopback port
// and a Unix socket. It is gone with this object, and also when the test process dies.
#pragma once

#include <optional>
#include <string>

#include "tests/support/process.hpp"

namespace baton::support {

class PostgresServer {
 public:
  // False: the package is not installed, and tests that need it are to be skipped.
  [[nodiscard]] static bool available();

  // Throws std::runtime_error if the server cannot be made or does not answer.
  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  void start();    // on the data and the port of before
  void stop();     // breaks all connections, then shuts down in order
  void crash();    // kills all of it at once; the next start() recovers from the log
  void restart();  // stop, then start

  // A new, empty database. Only while the server runs.
  [[nodiscard]] std::string create_database(const std::string& name) const;
  [[nodiscard]] std::string url(const std::string& database = "postgres") const;         // by TCP
  [[nodiscard]] std::string socket_url(const std::string& database = "postgres") const;  // by Unix socket
  [[nodiscard]] int port() const { return port_; }

 private:
  void wait_until_ready();
  void end(int signal);

  std::string directory_;
  int port_ = 0;
  std::optional<Process> server_;
};

}  // namespace baton::support
