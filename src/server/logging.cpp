#include "server/logging.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/json_write.hpp"
#include "base/time.hpp"

namespace baton::server {
namespace {

// {"time":…,"level":…,"message":…}
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& record, spdlog::memory_buf_t& out) override {
    const auto text = [](const spdlog::string_view_t& of) { return std::string_view(of.data(), of.size()); };
    std::string line;
    append_object(line, "time", std::chrono::floor<Duration>(record.time), "level",
                  text(spdlog::level::to_string_view(record.level)), "message", text(record.payload));
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }
  [[nodiscard]] std::unique_ptr<formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

void set_up_logging(const std::string& level, LogFormat format) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const bool json = format == LogFormat::json || (format == LogFormat::automatic && !terminal);
  const bool colour = terminal && !json && std::getenv("NO_COLOR") == nullptr;
  spdlog::sink_ptr sink;
  if (colour)
    sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(spdlog::color_mode::always);
  else
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("baton", std::move(sink));
  if (json)
    logger->set_formatter(std::make_unique<JsonFormatter>());
  else
    logger->set_pattern("%H:%M:%S.%e %^%-5l%$ %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace baton::server
