#include "worker/handlers.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

#include "base/json_write.hpp"

namespace baton::worker {
namespace json = boost::json;
namespace {

constexpr double sleep_seconds_max = 86'400;
constexpr std::int64_t fail_times_max = 1'000'000;

HandlerResult completed(Json output) { return {.completed = true, .output = std::move(output), .error = {}}; }
HandlerResult failed(std::string error) { return {.completed = false, .output = {}, .error = std::move(error)}; }

// Parameters that are not an object count as none: only echo has a use for them.
json::object parameters(const Handout& task) {
  json::error_code error;
  json::value value = json::parse(task.params.text, error);
  if (error || !value.is_object()) return {};
  return std::move(value.as_object());
}

std::string text_or(const json::object& params, std::string_view key, std::string fallback) {
  const json::value* value = params.if_contains(key);
  if (value == nullptr || value->is_null()) return fallback;
  if (value->is_string()) return std::string{value->get_string()};
  return json_text(*value);
}

HandlerResult echo(const Handout& task) { return completed(json_object("echoed_params", task.params)); }

HandlerResult sleep(const Handout& task) {
  const json::object params = parameters(task);
  const json::value* value = params.if_contains("seconds");
  if (value == nullptr) value = params.if_contains("duration_seconds");
  if (value == nullptr) return failed("sleep needs the parameter 'seconds'");
  if (!value->is_number()) return failed("sleep: 'seconds' must be a number, got " + json_text(*value));
  const double seconds = value->to_number<double>();
  if (!(seconds >= 0 && seconds <= sleep_seconds_max))
    return failed(fmt::format("sleep: 'seconds' must be from 0 to {:.0f}, got {}", sleep_seconds_max, json_text(*value)));
  HandlerResult verdict = completed(json_object("slept_seconds", Json{fmt::format("{}", seconds)}));
  verdict.after = std::chrono::milliseconds{std::llround(std::ceil(seconds * 1000))};
  return verdict;
}

HandlerResult fail_always(const Handout& task) {
  return failed(text_or(parameters(task), "message", "the handler 'fail' always fails"));
}

HandlerResult flaky(const Handout& task) {
  const json::object params = parameters(task);
  std::int64_t fail_times = 1;
  if (const json::value* value = params.if_contains("fail_times")) {
    json::error_code error;
    fail_times = value->to_number<std::int64_t>(error);
    if (error || fail_times < 0 || fail_times > fail_times_max)
      return failed("flaky: 'fail_times' must be a whole number from 0, got " + json_text(*value));
  }
  const std::int64_t attempt = std::int64_t{task.retry_count} + 1;
  if (attempt > fail_times) return completed(json_object("attempts", attempt));
  return failed(
      text_or(params, "message", fmt::format("flaky: attempt {} of {} that fail", attempt, fail_times)));
}

}  // namespace

HandlerResult run_builtin(const Handout& task) {
  if (task.handler == "echo") return echo(task);
  if (task.handler == "sleep") return sleep(task);
  if (task.handler == "fail") return fail_always(task);
  if (task.handler == "flaky") return flaky(task);
  return failed(fmt::format(
      "no built-in handler '{}' (there are echo, sleep, fail and flaky); a task on the queue 'builtin' can "
      "only use those: give it another queue and run a worker there",
      task.handler));
}

}  // namespace baton::worker
