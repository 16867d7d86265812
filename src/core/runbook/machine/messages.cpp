#include "core/runbook/machine/messages.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

#include "base/json_document.hpp"

namespace baton::runbook {
namespace {

constexpr std::size_t name_bytes_max = 400;
constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// What is inside a message. A field that is null counts as absent. Everything that is wrong is collected, so
// that the sender hears it at once.
class Message {
 public:
  explicit Message(JsonView object) : object_(object) {}

  [[nodiscard]] JsonView find(std::string_view key) const {
    const JsonView value = object_.find_any_case(key);
    return value && !value.is_null() ? value : JsonView{};
  }

  std::optional<std::string> text(std::string_view key, std::size_t bytes_max = name_bytes_max) {
    const JsonView value = find(key);
    if (!value) return std::nullopt;
    if (value.kind() != JsonKind::string || value.string().empty() || value.string().size() > bytes_max) {
      wrong(key, fmt::format("must be a text of 1 to {} bytes", bytes_max));
      return std::nullopt;
    }
    return clean_text(value.string(), bytes_max);
  }

  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max) {
    const JsonView value = find(key);
    if (!value) return std::nullopt;
    const bool may_be_absent = min == 0;
    if (may_be_absent && value.kind() == JsonKind::string && value.string().empty()) return std::nullopt;
    const auto number = number_of(value);
    if (number && *number >= min && *number <= max) return number;
    wrong(key, max == int64_max && min == 1 ? std::string("must be a positive integer")
                                            : fmt::format("must be an integer from {} to {}", min, max));
    return std::nullopt;
  }

  std::optional<bool> truth(std::string_view key) {
    const JsonView value = find(key);
    if (!value) return std::nullopt;
    if (value.kind() == JsonKind::boolean) return value.boolean();
    if (value.kind() == JsonKind::string && equal_ignoring_case(value.string(), "true")) return true;
    if (value.kind() == JsonKind::string && equal_ignoring_case(value.string(), "false")) return false;
    wrong(key, "must be true or false");
    return std::nullopt;
  }

  template <class T>
  T required(std::string_view key, std::optional<T> value) {
    if (!value && !find(key)) wrong(key, "is required");
    return value.value_or(T{});
  }
  std::int64_t id(std::string_view key) { return required(key, integer(key, 1, int64_max)); }

  std::vector<std::int64_t> ids(std::string_view key) {
    const JsonView value = find(key);
    std::vector<std::int64_t> list;
    if (!value) return list;
    if (value.kind() != JsonKind::array) wrong(key, "must be an array of ids");
    for (const JsonView& item : value.items()) {
      const auto number = number_of(item);
      if (number && *number > 0) {
        list.push_back(*number);
      } else {
        wrong(fmt::format("{}[{}]", key, list.size()), "must be a positive integer");
        break;
      }
    }
    return list;
  }

  void wrong(std::string_view key, std::string_view why) {
    if (!errors_.empty()) errors_ += "; ";
    errors_ += fmt::format("{} {}", key, why);
  }
  [[nodiscard]] const std::string& errors() const { return errors_; }

 private:
  static std::optional<std::int64_t> number_of(JsonView value) {
    if (value.kind() == JsonKind::integer) return value.integer();
    if (value.kind() == JsonKind::string) return to_number(value.string());
    return std::nullopt;
  }

  JsonView object_;
  std::string errors_;
};

struct Target {
  std::optional<std::int64_t> step, init;
};

// Which row a check means. Some senders write 0 for the id that they do not mean.
Target read_target(Message& message, bool may_be_either) {
  auto step = message.integer("stepExecutionId", 0, int64_max);
  auto init = message.integer("initExecutionId", 0, int64_max);
  const auto is_init = message.truth("isInitStep");
  if (step == 0) step.reset();
  if (init == 0) init.reset();
  if (!step && !init) {
    if (message.errors().empty()) message.wrong("stepExecutionId", "is required, or initExecutionId");
    return {};
  }
  if (is_init) return *is_init ? Target{{}, init ? init : step} : Target{step ? step : init, {}};
  if (step && init && *step != *init) {
    message.wrong("stepExecutionId", "and initExecutionId differ, and isInitStep does not decide");
    return {};
  }
  if (step && !init && may_be_either) return {step, step};
  return {step, init};
}

// The step that a worker's correlationData names; what is no object, or names none, says nothing.
std::optional<Ref> read_correlation(Message& result) {
  const JsonView data = result.find("correlationData");
  if (!data || data.kind() != JsonKind::object) return std::nullopt;
  Message inner(data);
  const auto id = [&](std::string_view key) { return inner.integer(key, 0, int64_max).value_or(0); };
  const std::int64_t cleanup = id("cleanupExecutionId");
  const bool names_step = id("stepExecutionId") > 0 || id("initExecutionId") > 0;
  const Target target = names_step && cleanup == 0 ? read_target(inner, false) : Target{};
  if (!inner.errors().empty()) result.wrong("correlationData:", inner.errors());
  if (cleanup > 0) return Ref{RowType::cleanup, cleanup};
  if (target.step) return Ref{RowType::step, *target.step};
  if (target.init) return Ref{RowType::init, *target.init};
  return std::nullopt;
}

BatchInit read_batch_init(Message&) { return {}; }

PhaseDue read_phase_due(Message& message) {
  return {.phase_execution_id = message.id("phaseExecutionId"), .member_ids = message.ids("memberIds")};
}

MemberAdded read_member_added(Message& message) { return {message.id("batchMemberId")}; }

MemberRemoved read_member_removed(Message& message) { return {message.id("batchMemberId")}; }

PollCheck read_poll_check(Message& message) {
  const auto [step, init] = read_target(message, true);
  return {step, init, message.text("stepName").value_or("")};
}

RetryCheck read_retry_check(Message& message) {
  const auto [step, init] = read_target(message, false);
  RetryCheck check{step, init, {}};
  if (const auto count = message.integer("retryCount", 0, int32_max))
    check.retry_count = static_cast<std::int32_t>(*count);
  return check;
}

using What = decltype(SchedulerMessage::what);

struct Type {
  std::string_view name;
  What (*read)(Message&);
};

template <auto read>
What read_as(Message& message) {
  return read(message);
}

constexpr std::array<Type, 6> types{{
    {"batch-init", read_as<read_batch_init>},
    {"phase-due", read_as<read_phase_due>},
    {"member-added", read_as<read_member_added>},
    {"member-removed", read_as<read_member_removed>},
    {"poll-check", read_as<read_poll_check>},
    {"retry-check", read_as<read_retry_check>},
}};

const Type* find_type(Message& message) {
  const auto wanted = message.text("messageType");
  if (!wanted) {
    if (message.errors().empty()) message.wrong("messageType", "is required");
    return nullptr;
  }
  for (const Type& type : types)
    if (equal_ignoring_case(type.name, *wanted)) return &type;
  message.wrong("messageType",
                "must be batch-init, phase-due, member-added, member-removed, poll-check or retry-check");
  return nullptr;
}

std::expected<JsonDocument, std::string> parse_object(std::string_view text) {
  auto document = JsonDocument::parse(text);
  if (!document) return std::unexpected(std::move(document.error().message));
  if (document->root().kind() != JsonKind::object)
    return std::unexpected(fmt::format("must be an object, not {}", name(document->root().kind())));
  return *std::move(document);
}

bool read_success(Message& message) {
  const std::string status = message.required("status", message.text("status"));
  for (const std::string_view word : {"success", "succeeded", "completed"})
    if (equal_ignoring_case(status, word)) return true;
  for (const std::string_view word : {"failure", "failed", "error"})
    if (equal_ignoring_case(status, word)) return false;
  if (!status.empty()) message.wrong("status", "must be Success or Failure");
  return false;
}

// Workers say what went wrong as a text, or as an object in which the text is the message.
std::optional<std::string> read_error(const Message& message) {
  const JsonView error = message.find("error");
  if (!error) return std::nullopt;
  JsonView text = error;
  if (error.kind() == JsonKind::object) {
    const JsonView inner = error.find_any_case("message");
    if (inner && inner.kind() == JsonKind::string && !inner.string().empty()) text = inner;
  }
  auto said = clean_text(text.kind() == JsonKind::string ? std::string(text.string()) : text.json().text,
                         error_bytes_max);
  return said.empty() ? std::nullopt : std::optional(std::move(said));
}

// Some clocks measure fractions of milliseconds.
std::optional<std::int64_t> read_duration(Message& message) {
  const JsonView value = message.find("durationMs");
  if (!value || value.kind() != JsonKind::real) return message.integer("durationMs", 0, int64_max);
  double millis = 0;
  const std::string text = value.json().text;
  std::from_chars(text.data(), text.data() + text.size(), millis);
  if (millis >= 0 && millis < 9e15) return static_cast<std::int64_t>(millis);
  message.wrong("durationMs", "must be a number of milliseconds");
  return std::nullopt;
}

constexpr std::array<std::pair<std::string_view, RowType>, 4> prefixes{{
    {"step-", RowType::step},
    {"init-", RowType::init},
    {"rollback-", RowType::cleanup},
    {"removal-", RowType::cleanup},
}};

// A positive number without zeros before it, so that every job has one name only.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t max) {
  const std::string_view digits = text.substr(0, text.find('-'));
  const auto number = to_number(digits);
  if (!number || *number < 1 || *number > max || digits.front() == '0') return std::nullopt;
  text.remove_prefix(digits.size());
  return number;
}

// The number behind the word; 0 when the text does not go on with it.
std::optional<std::int32_t> take_counter(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return 0;
  text.remove_prefix(word.size());
  const auto number = take_number(text, int32_max);
  if (!number) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

}  // namespace

std::expected<SchedulerMessage, std::string> parse_message(std::string_view document) {
  const auto parsed = parse_object(document);
  if (!parsed) return std::unexpected(parsed.error());
  Message message(parsed->root());
  SchedulerMessage read;
  if (const Type* type = find_type(message)) read.what = type->read(message);
  read.runbook_name = message.required("runbookName", message.text("runbookName"));
  read.runbook_version = static_cast<std::int32_t>(
      message.required("runbookVersion", message.integer("runbookVersion", 1, int32_max)));
  read.batch_id = message.id("batchId");
  if (!message.errors().empty()) return std::unexpected(message.errors());
  return read;
}

std::expected<WorkerResult, std::string> parse_worker_result(std::string_view document) {
  const auto parsed = parse_object(document);
  if (!parsed) return std::unexpected(parsed.error());
  Message message(parsed->root());
  WorkerResult read;
  read.job_id = message.required("jobId", message.text("jobId", 600));
  read.correlated = read_correlation(message);
  read.success = read_success(message);
  if (const JsonView result = message.find("result")) read.result = result.json();
  read.error = read_error(message);
  read.lease = message.text("lease", 200);
  read.worker = message.text("worker", 200);
  if (!read.worker) read.worker = message.text("workerId", 200);
  read.duration_ms = read_duration(message);
  if (!message.errors().empty()) return std::unexpected(message.errors());
  return read;
}

std::optional<JobName> parse_job_id(std::string_view text) {
  for (const auto& [prefix, type] : prefixes) {
    if (!text.starts_with(prefix)) continue;
    text.remove_prefix(prefix.size());
    const auto id = take_number(text, int64_max);
    if (!id) return std::nullopt;
    const auto retry = take_counter(text, "-retry-");
    if (!retry) return std::nullopt;
    const auto poll = take_counter(text, "-poll-");
    if (!poll || !text.empty()) return std::nullopt;
    return JobName{{type, *id}, *retry, *poll};
  }
  return std::nullopt;
}

std::string log_name(Ref ref) { return std::string(name(ref.type)) + "-" + std::to_string(ref.id); }

std::string job_id(std::string_view prefix, std::int64_t id, std::int32_t retry, std::int32_t poll) {
  std::string text = fmt::format("{}-{}", prefix, id);
  if (retry > 0) text += fmt::format("-retry-{}", retry);
  if (poll > 0) text += fmt::format("-poll-{}", poll);
  return text;
}

}  // namespace baton::runbook
