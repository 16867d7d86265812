#include "cli/bench/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace baton::cli::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t connections_max = 4'000;
constexpr auto drain_time = 20s;

class Load {
 public:
  Load(const std::string& url, const std::string& workflow_id, const Plan& plan)
      : wire_(url),
        plan_(plan),
        request_(
            post("/api/v1/jobs?wait_ms=30000",
                 fmt::format(R"({{"workflow_id":"{}","input_data":{{"message":"hello"}}}})", workflow_id))) {}

  Result<Measured> closed();
  Result<Measured> open();

 private:
  Result<> start(std::size_t connection, Steady::time_point meant);
  // A job's answer is there, on a connection that is free again.
  Result<> answered(std::size_t connection, int status, std::string_view body);
  Result<> answer_all(std::chrono::nanoseconds patience, bool go_on);
  Result<> begin();
  Result<> end();
  Result<> drain();
  Result<> start_due();
  [[nodiscard]] bool is_over(Steady::time_point now) const;

  Wire wire_;
  const Plan& plan_;
  const std::string request_;
  Measured measured_;
  Steady::time_point began_ = Steady::time_point::max();  // of the measured part
  Steady::time_point ended_ = Steady::time_point::max();
  std::vector<Steady::time_point> meant_;  // by connection
  std::vector<std::size_t> free_;
  std::uint64_t started_ = 0;  // in the measured part
  std::size_t in_flight_ = 0;
  Steady::time_point next_;  // open loop: when the next job is meant to start
  std::mt19937_64 random_{1};
};

Result<> Load::start(std::size_t connection, Steady::time_point meant) {
  meant_.resize(std::max(meant_.size(), connection + 1));
  meant_[connection] = meant;
  if (meant >= began_) ++started_;
  ++in_flight_;
  return wire_.send(connection, request_);
}

Result<> Load::answered(std::size_t connection, int status, std::string_view body) {
  const auto now = Steady::now();
  --in_flight_;
  free_.push_back(connection);
  const bool completed = status == 201 && body.find(R"("status":"COMPLETED")") != std::string_view::npos;
  if (!completed) ++measured_.failed;
  // The rate counts what ended in the measured part, latency what was meant to start in it.
  if (completed && now >= began_ && now <= ended_) {
    ++measured_.jobs;
    if (plan_.on_done) plan_.on_done(measured_.jobs);
  }
  if (completed && meant_[connection] >= began_ && meant_[connection] <= ended_)
    measured_.latencies.add(now - meant_[connection]);
  return {};
}

Result<> Load::answer_all(std::chrono::nanoseconds patience, bool go_on) {
  return wire_.wait(patience, [&](std::size_t connection, int status, std::string_view body) -> Result<> {
    TRY(answered(connection, status, body));
    if (!go_on || (plan_.jobs > 0 && began_ <= Steady::now() && started_ >= plan_.jobs)) return {};
    free_.pop_back();
    return start(connection, Steady::now());
  });
}

Result<> Load::begin() {
  if (plan_.on_begin) TRY(plan_.on_begin());
  measured_.failed = 0;
  began_ = Steady::now();
  return {};
}

Result<> Load::end() {
  ended_ = Steady::now();
  measured_.seconds = std::chrono::duration<double>(ended_ - began_).count();
  return plan_.on_end ? plan_.on_end() : Result<>{};
}

bool Load::is_over(Steady::time_point now) const {
  return plan_.jobs > 0 ? measured_.jobs + measured_.failed >= plan_.jobs : now - began_ >= plan_.duration;
}

Result<> Load::drain() {
  const auto limit = Steady::now() + drain_time;
  while (in_flight_ > 0 && Steady::now() < limit) TRY(answer_all(100ms, false));
  measured_.failed += in_flight_;
  measured_.latencies.sort();
  return {};
}

Result<Measured> Load::closed() {
  if (plan_.warm_up == 0ms) TRY(begin());
  for (std::size_t i = 0; i < plan_.clients && (plan_.jobs == 0 || i < plan_.jobs || plan_.warm_up > 0ms);
       ++i) {
    TRY_ASSIGN(const std::size_t connection, wire_.open());
    TRY(start(connection, Steady::now()));
  }
  const auto warm = Steady::now() + plan_.warm_up;
  while (Steady::now() < warm) TRY(answer_all(10ms, true));
  if (plan_.warm_up > 0ms) TRY(begin());
  while (!is_over(Steady::now())) TRY(answer_all(10ms, true));
  TRY(end());
  TRY(drain());
  return std::move(measured_);
}

// Starts what is due. A job that finds no free connection waits here, and its wait counts: it was meant to
// start before.
Result<> Load::start_due() {
  std::exponential_distribution<double> gap(plan_.rate);
  while (next_ <= Steady::now()) {
    if (free_.empty()) {
      if (meant_.size() >= connections_max) return {};
      TRY_ASSIGN(const std::size_t fresh, wire_.open());
      free_.push_back(fresh);
    }
    const std::size_t connection = free_.back();
    free_.pop_back();
    TRY(start(connection, next_));
    next_ += std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(gap(random_)));
  }
  return {};
}

Result<Measured> Load::open() {
  next_ = Steady::now();
  const auto warm = next_ + plan_.warm_up;
  while (next_ < warm) {
    TRY(start_due());
    TRY(answer_all(std::clamp<std::chrono::nanoseconds>(next_ - Steady::now(), 0ns, 10ms), false));
  }
  TRY(begin());
  while (!is_over(Steady::now())) {
    TRY(start_due());
    TRY(answer_all(std::clamp<std::chrono::nanoseconds>(next_ - Steady::now(), 0ns, 10ms), false));
  }
  TRY(end());
  // What was meant to start and found no connection has not been served at all.
  if (free_.empty() && meant_.size() >= connections_max)
    measured_.failed +=
        static_cast<std::uint64_t>(std::chrono::duration<double>(ended_ - next_).count() * plan_.rate);
  TRY(drain());
  return std::move(measured_);
}

}  // namespace

void Latencies::add(Steady::duration took) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  micros_.push_back(static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(micros, 0, std::numeric_limits<std::uint32_t>::max())));
}

void Latencies::sort() { std::ranges::sort(micros_); }

double Latencies::millis(double quantile) const {
  if (micros_.empty()) return 0;
  const double rank = std::ceil(quantile * static_cast<double>(micros_.size()));
  return micros_[static_cast<std::size_t>(std::max(rank, 1.0)) - 1] / 1000.0;
}

Result<Measured> run_load(const std::string& url, const std::string& workflow_id, const Plan& plan) {
  Load load(url, workflow_id, plan);
  return plan.rate > 0 ? load.open() : load.closed();
}

}  // namespace baton::cli::bench
