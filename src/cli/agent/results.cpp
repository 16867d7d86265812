#include "cli/agent/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "http/json/json_body.hpp"

namespace baton::cli::agent {
namespace {

constexpr std::size_t results_max = 1'000;              // what the server takes
constexpr std::size_t batch_bytes_max = 1024 * 1024;  // far below what it takes by default
constexpr milliseconds results_answer_time{30'000};

// The server could not decide now and wants to be asked again.
bool is_passing_code(std::string_view code) {
  constexpr std::array<std::string_view, 4> codes{"overloaded", "stopping", "store_unavailable",
                                                  "store_full"};
  return std::ranges::find(codes, code) != codes.end();
}

}  // namespace

Results::Results(const ServerAccess& server, Mailbox& mailbox, Timers& timers, std::string worker,
                 Listener listener)
    : timers_(timers), worker_(std::move(worker)), listener_(std::move(listener)), line_(server, mailbox) {}

void Results::add(Task task, const Outcome& outcome, milliseconds took) {
  std::string body = render_result(task, outcome, worker_, took);
  task.params = {};
  waiting_.push_back({.task = std::move(task), .body = std::move(body)});
  send();
}

void Results::send() {
  if (is_busy_ || waiting_.empty()) return;
  std::string body = R"({"results":[)";
  const std::size_t count_max = singles_ > 0 ? 1 : results_max;
  while (!waiting_.empty() && sent_.size() < count_max &&
         (sent_.empty() || body.size() + waiting_.front().body.size() < batch_bytes_max)) {
    if (!sent_.empty()) body += ',';
    body += waiting_.front().body;
    sent_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  body += "]}";
  if (singles_ > 0) --singles_;
  is_busy_ = true;
  line_.post("/api/v1/callbacks/task-results", std::move(body), results_answer_time,
             [this](const Answered& answer) { on_answer(answer); });
}

void Results::on_answer(const Answered& answer) {
  if (answer && answer->status == 200) {
    pauses_.reset();
    settle_each(answer->body);  // still busy: what is added meanwhile waits
    if (!sent_.empty()) return send_later();
  } else if (is_passing(answer) || is_denied(answer) || answer->status == 404) {
    if (pauses_.is_fresh())
      listener_.trouble(fmt::format("{} results wait: {}", size(), describe(answer)));
    return send_later();
  } else if (sent_.size() > 1) {
    singles_ = sent_.size();
    put_back();
  } else {
    replace_refused(answer);
  }
  is_busy_ = false;
  send();
}

void Results::settle_each(const std::string& body) {
  const auto document = http::JsonDocument::parse(body);
  const auto list = document && document->root().kind() == http::JsonKind::object
                        ? document->root().find("results")
                        : http::JsonView{};
  const auto outcomes =
      list && list.kind() == http::JsonKind::array ? list.items() : std::vector<http::JsonView>{};
  std::vector<Entry> again;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    const auto outcome = i < outcomes.size() ? outcomes[i] : http::JsonView{};
    const bool is_told = outcome && outcome.kind() == http::JsonKind::object;
    const auto accepted = is_told ? outcome.find("accepted") : http::JsonView{};
    const auto code = is_told ? outcome.find("code") : http::JsonView{};
    const std::string_view why = code && code.kind() == http::JsonKind::string ? code.string() : "";
    const bool is_accepted = accepted && accepted.kind() == http::JsonKind::boolean && accepted.boolean();
    if (!is_accepted && (why.empty() || is_passing_code(why))) {
      again.push_back(std::move(sent_[i]));
      continue;
    }
    if (!is_accepted)
      listener_.trouble(
          fmt::format("{} is not ours any more, its result is dropped: {}", sent_[i].task.task_id, why));
    listener_.settled(sent_[i].task.key());
  }
  sent_ = std::move(again);
}

void Results::put_back() {
  waiting_.insert(waiting_.begin(), std::make_move_iterator(sent_.begin()),
                  std::make_move_iterator(sent_.end()));
  sent_.clear();
}

void Results::send_later() {
  put_back();
  timers_.after(pauses_.next(), [this] {
    is_busy_ = false;
    send();
  });
}

// A result that the server does not understand (too large, too deep) must not be sent for ever, and the job
// must not wait for the timeout to learn of it.
void Results::replace_refused(const Answered& answer) {
  Entry entry = std::move(sent_.front());
  sent_.clear();
  const std::string why = describe(answer);
  listener_.trouble(fmt::format("the server refused the result of {}: {}", entry.task.task_id, why));
  if (entry.is_substitute) return listener_.settled(entry.task.key());
  entry.is_substitute = true;
  entry.body =
      render_result(entry.task, failure("the server refused the result: " + why), worker_, milliseconds{0});
  waiting_.push_front(std::move(entry));
}

}  // namespace baton::cli::agent
