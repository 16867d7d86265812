#include "tests/support/postgres_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

namespace baton::support {
namespace {

const std::string bin = "/usr/lib/postgresql/15/bin/";

// The server refuses to run as root, so the child becomes the package's user. Done here and not by runuser,
// because the signal on the parent's death is forgotten when a process changes its user after asking for it.
void become_postgres() {
  if (::geteuid() != 0) return;
  const passwd* user = ::getpwnam("postgres");
  if (user == nullptr || ::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 ||
      ::setuid(user->pw_uid) != 0)
    ::_exit(126);
}

pid_t spawn(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child > 0) return child;
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(output, 1);
  ::dup2(output, 2);
  become_postgres();
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);  // the server's signal for an immediate shutdown
  if (::getppid() != parent) ::_exit(125);
  if (::chdir("/") != 0) ::_exit(124);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

int run(const std::vector<std::string>& command, const std::string& log) {
  const pid_t child = spawn(command, log);
  int status = 0;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

int free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(probe, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(probe);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
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
  const std::vector<std::string> initdb = {bin + "initdb",    "-D", directory_ + "/data", "--no-sync", "-A",
                                           "trust",           "-U", "postgres",           "-E",        "UTF8",
                                           "--locale=C.UTF-8"};
  if (run(initdb, directory_ + "/log") != 0)
    throw std::runtime_error("initdb failed, see " + directory_ + "/log");
  start();
}

PostgresServer::~PostgresServer() {
  end(SIGQUIT);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void PostgresServer::start() {
  if (server_ > 0) return;
  server_ =
      spawn({bin + "postgres", "-D", directory_ + "/data", "-k", directory_, "-p", std::to_string(port_),
             "-c", "listen_addresses=127.0.0.1", "-c", "fsync=on", "-c", "max_connections=50"},
            directory_ + "/log");
  wait_until_ready();
}

void PostgresServer::stop() { end(SIGINT); }

void PostgresServer::crash() { end(SIGQUIT); }

void PostgresServer::restart() {
  stop();
  start();
}

void PostgresServer::end(int signal) {
  if (server_ <= 0) return;
  ::kill(server_, signal);
  int status = 0;
  ::waitpid(server_, &status, 0);
  server_ = -1;
}

void PostgresServer::wait_until_ready() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const std::string port = std::to_string(port_);
  while (run({bin + "pg_isready", "-q", "-h", "127.0.0.1", "-p", port}, directory_ + "/log") != 0) {
    int status = 0;
    if (::waitpid(server_, &status, WNOHANG) == server_) {
      server_ = -1;
      throw std::runtime_error("PostgreSQL ended, see " + directory_ + "/log");
    }
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("PostgreSQL does not answer, see " + directory_ + "/log");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string PostgresServer::create_database(const std::string& name) const {
  const int status =
      run({bin + "createdb", "-h", "127.0.0.1", "-p", std::to_string(port_), "-U", "postgres", name},
          directory_ + "/log");
  if (status != 0)
    throw std::runtime_error("cannot create database " + name + ", see " + directory_ + "/log");
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
