#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/csv.hpp"
#include "scheduler/readers.hpp"

namespace baton::scheduler {
namespace {

class File {
 public:
  explicit File(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}  // a pipe must not stop us
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

std::unexpected<Error> cannot_read() {
  return fail(Code::unavailable, fmt::format("cannot read the file: {}", std::strerror(errno)));
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// A file that somebody is writing would look as if members had left.
Result<std::string> read_whole(const std::string& path, const Limits& limits) {
  const File file(path);
  struct stat before {
  }, after{};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &before) != 0) return cannot_read();
  if (!S_ISREG(before.st_mode)) return fail(Code::invalid, "not a file");
  const auto size = static_cast<std::size_t>(before.st_size);
  if (size > limits.bytes)
    return fail(Code::invalid, fmt::format("the file has {} bytes; at most {} are read", size, limits.bytes));
  std::string text(size, '\0');
  std::size_t read = 0;
  while (read < size) {
    const auto got = ::read(file.descriptor(), text.data() + read, size - read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read();
    if (got == 0) break;
    read += static_cast<std::size_t>(got);
  }
  if (::fstat(file.descriptor(), &after) != 0) return cannot_read();
  if (read < size || !same(before, after))
    return fail(Code::unavailable, "the file changed while it was read");
  return text;
}

}  // namespace

Result<SourceTable> read_csv_file(std::string_view path, const Limits& limits) {
  if (path.starts_with("file://")) path.remove_prefix(7);
  TRY_ASSIGN(const std::string text, read_whole(std::string(path), limits));
  return read_csv_text(text, limits);
}

Result<SourceTable> read_csv_text(std::string_view text, const Limits& limits) {
  auto read = csv::read(text, {limits.bytes, limits.rows, limits.columns, limits.cells});
  if (!read) return fail(Code::invalid, fmt::format("{}", fmt::join(read.error(), "\n")));
  SourceTable table{.columns = std::move(read->columns), .rows = {}, .lines = std::move(read->lines)};
  table.rows.reserve(read->rows.size());
  for (auto& row : read->rows) {
    table.rows.emplace_back(std::make_move_iterator(row.begin()), std::make_move_iterator(row.end()));
    row = {};
  }
  return table;
}

}  // namespace baton::scheduler
