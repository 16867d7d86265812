#include "cli/request.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/json.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/input.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {

Target& Target::with(std::string_view key, std::string_view value) {
  if (value.empty()) return *this;
  text_ += fmt::format("{}{}={}", separator_, key, escaped(value));
  separator_ = '&';
  return *this;
}

Target& Target::with(std::string_view key, int number) {
  return with(key, number == 0 ? "" : std::to_string(number));
}

int tell(const RemoteOptions& options, const Result<Answer>& answer, const Show& show) {
  if (!answer) return refuse(options, answer.error());
  if (!answer->ok()) return refuse(options, *answer);
  if (options.as_json)
    print_json(answer->body);
  else
    show(Fields(answer->body));
  return exit_ok;
}

int get(const RemoteOptions& options, const std::string& target, const Show& show) {
  return tell(options, Remote(options).get(target), show);
}

int post(const RemoteOptions& options, const std::string& target, std::string body, const Show& show) {
  return tell(options, Remote(options).post(target, std::move(body), "application/json"), show);
}

int post_file(const RemoteOptions& options, const std::string& target, const std::string& path,
              std::string_view content_type, const Show& show) {
  auto text = read_file(path);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  return tell(options, Remote(options).post(target, *std::move(text), content_type), show);
}

namespace {

void print_rows(const std::vector<Row>& rows, const std::string& none) {
  if (rows.size() == 1)
    fmt::print(stderr, "{}\n", none);
  else
    fmt::print("{}", table(rows));
}

}  // namespace

void print_page(const Fields& page, const Listing& listing, const Fill& fill) {
  std::vector<Row> rows{listing.heading};
  for (const Fields& item : page.items(listing.key)) rows.push_back(fill(item));
  print_rows(rows, listing.none);
  for (const std::string_view key : {"next_cursor", "nextCursor"})  // the latter of service calls
    if (page.has(key)) fmt::print(stderr, "More: add --cursor {}\n", page.text(key));
}

int list_page(const RemoteOptions& options, const Listing& listing, const Fill& fill) {
  return get(options, listing.target, [&](const Fields& page) { print_page(page, listing, fill); });
}

int list_all(const RemoteOptions& options, const Listing& listing, const Fill& fill) {
  Remote remote(options);
  std::vector<Row> rows{listing.heading};
  std::vector<Json> documents;
  std::string cursor;
  do {
    const char separator = listing.target.find('?') == std::string::npos ? '?' : '&';
    const std::string from = cursor.empty() ? "" : fmt::format("{}cursor={}", separator, escaped(cursor));
    const auto answer = remote.get(listing.target + from);
    if (!answer) return refuse(options, answer.error());
    if (!answer->ok()) return refuse(options, *answer);
    const Fields page(answer->body);
    for (const Fields& item : page.items(listing.key)) {
      if (options.as_json)
        documents.push_back({item.whole()});
      else
        rows.push_back(fill(item));
    }
    cursor = page.text("next_cursor");
  } while (!cursor.empty());
  if (options.as_json)
    print_json(json_object(listing.key, documents).text);
  else
    print_rows(rows, listing.none);
  return exit_ok;
}

int each_page(const RemoteOptions& options, const std::string& target, std::int64_t after, const Show& show) {
  Remote remote(options);
  for (bool first = true;; first = false) {
    const auto answer = remote.get(fmt::format("{}?limit=1000&after={}", target, after));
    if (!answer) return refuse(options, answer.error());
    if (!answer->ok()) return refuse(options, *answer);
    const Fields page(answer->body);
    const bool is_empty = page.number("next_after") == after;
    if (options.as_json) {
      if (first || !is_empty) print_json(answer->body);
    } else {
      show(page);
    }
    if (is_empty) return exit_ok;
    after = page.number("next_after");
  }
}

void print_field(std::string_view name, const std::string& value) {
  if (!value.empty()) fmt::print("{:<10} {}\n", name, value);
}

void print_why(const std::string& what, const Fields& answer) {
  fmt::print("{} is {}: {}\n", what, answer.text("status"), one_line(answer.text("summary")));
  bool first = true;
  for (const Fields& reason : answer.items("reasons"))
    if (!std::exchange(first, false)) fmt::print("  {}\n", one_line(reason.text("message")));
}

void print_text(std::string_view text) { fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n"); }

std::string at_and_by(const std::string& at, const std::string& by) {
  return at.empty() || by.empty() ? at : at + " by " + printable(by);
}

}  // namespace baton::cli
