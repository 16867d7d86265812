// One writer per SQLite file: an exclusive flock on PATH.lock, held as long as this object lives. The system
// releases it when the process dies, however it dies. The file stays; it holds the number of the process that
// had the lock last.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace baton::store::sqlite {

class WriterLock {
 public:
  [[nodiscard]] static Result<WriterLock> take(const std::string& database_path);
  ~WriterLock();
  WriterLock(WriterLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  WriterLock& operator=(WriterLock&&) = delete;

 private:
  explicit WriterLock(int file) : file_(file) {}
  int file_;
};

}  // namespace baton::store::sqlite
