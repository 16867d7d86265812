#include "store/sqlite/writer_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace baton::store::sqlite {
namespace {

std::string holder(int file) {
  std::array<char, 32> text{};
  const auto size = ::pread(file, text.data(), text.size(), 0);
  std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!pid.empty() && (pid.back() < '0' || pid.back() > '9')) pid.pop_back();
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

// A second name of the file would have a lock, and with a hard link even a WAL, of its own.
Result<WriterLock> WriterLock::take(const std::string& database_path) {
  std::error_code none;  // it may not be there yet
  const std::filesystem::path real = std::filesystem::weakly_canonical(database_path, none);
  if (std::filesystem::exists(real, none) && std::filesystem::hard_link_count(real, none) > 1)
    return fail(Code::conflict, "cannot open the SQLite database " + database_path +
                                    " for writing: the file has more than one name (hard links)");
  const std::string path = (real.empty() ? database_path : real.string()) + ".lock";
  if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty()) {
    std::error_code ignored;  // open() below says what is wrong
    std::filesystem::create_directories(parent, ignored);
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(Code::unavailable, "cannot open the lock file " + path + ": " + std::strerror(errno));
  WriterLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return fail(Code::unavailable, "cannot lock " + path + ": " + std::strerror(errno));
    return fail(Code::conflict, "cannot open the SQLite database " + database_path +
                                    " for writing: " + holder(file) + " holds " + path);
  }
  // The number is only for the message above, so a failure to write it does no harm.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file, 0) == 0) [[maybe_unused]]
    const auto written = ::pwrite(file, pid.data(), pid.size(), 0);
  return lock;
}

WriterLock::~WriterLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace baton::store::sqlite
