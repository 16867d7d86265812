#include "cli/reconnect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/ids.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/targets.hpp"
#include "cli/terminal/output.hpp"
#include "core/workflow/definition/span.hpp"

namespace baton::cli {

namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds patience_default = 5min;

}  // namespace

void add_reconnect_option(Parser command, std::string& span) {
  command.add_option("--reconnect", span, "how long to wait for a server that went away; default 5m")
      .type_name("SPAN")
      .check(check_span);
}

std::string new_key() {
  std::random_device random;
  const auto word = [&] { return std::uint64_t{random()} << 32U | random(); };
  const std::uint64_t high = word();
  return uuid7(now(), high, word());
}

bool may_pass(const Result<Answer>& answer) {
  return answer ? answer->status >= 500 : answer.error().code == Code::unavailable;
}

std::string trouble_of(const Result<Answer>& answer) {
  const std::string text = answer ? describe_problem(answer->status, answer->body) : answer.error().message;
  return text.substr(0, text.find('\n'));
}

Reconnecting::Reconnecting(const RemoteOptions& options, const std::string& span, Tell tell)
    : remote_(options),
      patience_(workflow::read_span(span).value_or(patience_default)),
      tell_(std::move(tell)) {}

void Reconnecting::tell_on_stderr(const std::string& trouble) {
  complain(trouble.empty() ? "the server is back" : trouble + "; waiting for the server");
}

Result<Answer> Reconnecting::get(const std::string& target) {
  return repeat([&] { return remote_.get(target); });
}

Result<Answer> Reconnecting::post(const std::string& target, const std::string& body, const Headers& headers) {
  return repeat([&] { return remote_.post(target, body, "application/json", headers); });
}

Result<Answer> Reconnecting::repeat(const std::function<Result<Answer>()>& ask) {
  while (true) {
    auto answer = ask();
    if (!may_pass(answer)) {
      reached();
      return answer;
    }
    was_reached_ = was_reached_ || (!answer && remote_.was_connected());
    if (!was_reached_ || !wait_after(trouble_of(answer))) return answer;
  }
}

bool Reconnecting::wait_after(const std::string& trouble) {
  const auto now = Clock::now();
  if (!away_since_) {
    away_since_ = now;
    pause_ = 50ms;
    tell_(trouble);
  }
  if (now - *away_since_ >= patience_) return false;
  // Not all who wait come back at the same moment.
  static std::minstd_rand random{std::random_device{}()};
  pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, 2s);
  std::this_thread::sleep_for(pause_ / 2 + std::chrono::milliseconds{random() % pause_.count()} / 2);
  return true;
}

void Reconnecting::reached() {
  was_reached_ = true;
  if (away_since_) tell_("");
  away_since_.reset();
}

}  // namespace baton::cli
