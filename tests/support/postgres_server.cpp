#include "tests/support/postgres_server.hpp"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "tests/support/listener.hpp"

namespace baton::support {
namespace {

const std::string bin = "/usr/lib/postgresql/15/bin/";

constexpr std::chrono::seconds time_max{60};

// The server refuses to run as root, so it becomes the package's user. The signal of its parent's death, here
// the one for an immediate shutdown, has to be asked for after that.
std::vector<std::string> as_postgres(std::vector<std::string> command) {
  std::vector<std::string> all{"setpriv", "--pdeathsig=QUIT"};
  if (::geteuid() == 0) all.insert(all.end(), {"--reuid=postgres", "--regid=postgres", "--clear-groups"});
  all.insert(all.end(), {"env", "--chdir=/", bin + command[0]});
  all.insert(all.end(), command.begin() + 1, command.end());
  return all;
}

void run(const std::vector<std::string>& command) {
  Process program(as_postgres(command));
  if (program.wait(time_max) != 0) throw std::runtime_error(command[0] + " failed: " + program.err());
}

int free_port() {
  const Listener probe = listen_on_loopback(1);
  ::close(probe.fd);
  return probe.port;
}

std::string make_directory() {
  std::string path = (std::filesystem::temp_directory_path() / "baton-postgres-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make " + path);
  if (const passwd* user = ::getpwnam("postgres"); ::geteuid() == 0 && user != nullptr) {
    if (::chown(path.c_str(), user->pw_uid, user->pw_gid) != 0)
      throw std::runtime_error("cannot give away " + path);
  }
  return path;
}

}  // namespace

bool PostgresServer::available() { return ::access((bin + "postgres").c_str(), X_OK) == 0; }

PostgresServer::PostgresServer() : directory_(make_directory()), port_(free_port()) {
  run({"initdb", "-D", directory_ + "/data", "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8",
       "--locale=C.UTF-8"});
  start();
}

PostgresServer::~PostgresServer() {
  end(SIGQUIT);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void PostgresServer::start() {
  if (server_) return;
  server_.emplace(
      as_postgres({"postgres", "-D", directory_ + "/data", "-k", directory_, "-p", std::to_string(port_),
                   "-c", "listen_addresses=127.0.0.1", "-c", "fsync=on", "-c", "max_connections=50"}));
  wait_until_ready();
}

void PostgresServer::stop() { end(SIGINT); }

void PostgresServer::crash() { end(SIGQUIT); }

void PostgresServer::restart() {
  stop();
  start();
}

void PostgresServer::end(int signal) {
  if (!server_) return;
  server_->signal(signal);
  (void)server_->wait(time_max);
  server_.reset();
}

void PostgresServer::wait_until_ready() {
  const auto deadline = std::chrono::steady_clock::now() + time_max;
  while (true) {
    Process ready({bin + "pg_isready", "-q", "-h", "127.0.0.1", "-p", std::to_string(port_)});
    if (ready.wait(time_max) == 0) return;
    if (server_->wait(std::chrono::milliseconds(20)) || std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("PostgreSQL ended, or does not answer: " + server_->err());
  }
}

std::string PostgresServer::create_database(const std::string& name) const {
  run({"createdb", "-h", "127.0.0.1", "-p", std::to_string(port_), "-U", "postgres", name});
  return url(name);
}

std::string PostgresServer::url(const std::string& database) const {
  return "postgresql://postgres@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string PostgresServer::socket_url(const std::string& database) const {
  std::string escaped;  // a host that is a path has its slashes escaped
  for (const char c : directory_) escaped += c == '/' ? std::string("%2F") : std::string(1, c);
  return "postgresql://postgres@" + escaped + ":" + std::to_string(port_) + "/" + database;
}

}  // namespace baton::support
