#include "cli/agent/line.hpp"

#include <algorithm>

namespace baton::cli::agent {

void Mailbox::put(std::function<void()> letter) {
  {
    const std::scoped_lock lock(mutex_);
    letters_.push_back(std::move(letter));
  }
  wake_();
}

void Mailbox::open_all() {
  std::vector<std::function<void()>> letters;
  {
    const std::scoped_lock lock(mutex_);
    letters.swap(letters_);
  }
  for (const auto& letter : letters) letter();
}

Timers::Id Timers::at(Clock::time_point when, std::function<void()> what) {
  const Id id{when, ++last_};
  due_.emplace(id, std::move(what));
  return id;
}

void Timers::run_due() {
  const auto now = Clock::now();
  while (!due_.empty() && due_.begin()->first.first <= now) {
    const auto what = std::move(due_.extract(due_.begin()).mapped());
    what();
  }
}

milliseconds Timers::until_next(milliseconds wait_max) const {
  if (due_.empty()) return wait_max;
  const auto left = std::chrono::ceil<milliseconds>(due_.begin()->first.first - Clock::now());
  return std::clamp(left, milliseconds{0}, wait_max);
}

milliseconds Pauses::next() {
  const milliseconds wait = wait_;
  wait_ = std::min(wait_ * 2, longest);
  return wait;
}

Line::Line(const ServerAccess& server, Mailbox& mailbox)
    : mailbox_(mailbox), client_(server.url, server.token, server.tenant), thread_([this] { run(); }) {}

Line::~Line() {
  interrupt();
  thread_.join();
}

void Line::interrupt() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  client_.interrupt();
}

void Line::post(std::string target, std::string body, milliseconds timeout,
                std::function<void(Answered)> then) {
  {
    const std::scoped_lock lock(mutex_);
    requests_.push_back({std::move(target), std::move(body), timeout, std::move(then)});
  }
  changed_.notify_one();
}

void Line::run() {
  while (true) {
    Request request;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
      if (stopping_) return;
      request = std::move(requests_.front());
      requests_.pop_front();
    }
    auto answer = client_.request("POST", request.target, std::move(request.body), "application/json", {},
                                  request.timeout);
    mailbox_.put(
        [then = std::move(request.then), answer = std::move(answer)]() mutable { then(std::move(answer)); });
  }
}

bool is_passing(const Answered& answer) {
  if (!answer) return true;
  return answer->status >= 500 || answer->status == 408 || answer->status == 429;
}

bool is_denied(const Answered& answer) { return answer && (answer->status == 401 || answer->status == 403); }

std::string describe(const Answered& answer) {
  return answer ? describe_problem(answer->status, answer->body) : answer.error().message;
}

}  // namespace baton::cli::agent
