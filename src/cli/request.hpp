// What most commands do: one request, and its answer as JSON for programs or in words for people.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_write.hpp"
#include "cli/remote.hpp"
#include "cli/terminal/fields.hpp"

namespace baton::cli {

// A path with a query; what is empty or 0 is left out.
class Target {
 public:
  explicit Target(std::string path) : text_(std::move(path)) {}
  Target& with(std::string_view key, std::string_view value);
  Target& with(std::string_view key, int number);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  char separator_ = '?';
};

using Show = std::function<void(const Fields&)>;

// With --json the answer as it came, else what `show` prints of it; refusals in words. Answers the exit code.
[[nodiscard]] int tell(const RemoteOptions& options, const Result<Answer>& answer, const Show& show);
[[nodiscard]] int get(const RemoteOptions& options, const std::string& target, const Show& show);
[[nodiscard]] int post(const RemoteOptions& options, const std::string& target, std::string body,
                       const Show& show);

// The same for a file, - for standard input, that is sent as it is.
[[nodiscard]] int post_file(const RemoteOptions& options, const std::string& target, const std::string& path,
                            std::string_view content_type, const Show& show);

using Row = std::vector<std::string>;
using Fill = std::function<Row(const Fields&)>;

struct Listing {
  std::string target;
  std::string key;  // of the array in the answer
  Row heading;
  std::string none = "None.";
};

// A table of one page, and how to get the next one.
[[nodiscard]] int list_page(const RemoteOptions& options, const Listing& listing, const Fill& fill);
void print_page(const Fields& page, const Listing& listing, const Fill& fill);
// A table of all pages, which follow each other by `cursor` and `next_cursor`. With --json they are one.
[[nodiscard]] int list_all(const RemoteOptions& options, const Listing& listing, const Fill& fill);

// One page after the other, which follow each other by `after` and `next_after`, for what may be too long to
// hold. `show` prints each for people; programs get them as they are.
[[nodiscard]] int each_page(const RemoteOptions& options, const std::string& target, std::int64_t after,
                            const Show& show);

// "name       value", unless there is none.
void print_field(std::string_view name, const std::string& value);
// What an answer of …/why says: one sentence, and below it what else there is.
void print_why(const std::string& what, const Fields& answer);
// A text as it is, with an end of line.
void print_text(std::string_view text);
// Who and when: "2026-11-16T05:26:17.569Z by ada"; empty when there is no time.
[[nodiscard]] std::string at_and_by(const std::string& at, const std::string& by);

}  // namespace baton::cli
