// Counters that any thread may bump and /metrics prints in Prometheus' text format.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>

namespace baton::metrics {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(std::int64_t n) { value_.store(n, std::memory_order_relaxed); }
  void add(std::int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Seconds, in buckets from 0.25 ms to 30 s.
class Histogram {
 public:
  static constexpr std::array<double, 14> bounds{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                 0.05,    0.1,    0.25,  0.5,    1,     5,    30};
  void observe(std::chrono::nanoseconds took);
  void render(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  std::array<std::atomic<std::uint64_t>, bounds.size() + 1> buckets_{};
  std::atomic<std::uint64_t> nanos_{0};
};

// Owns its metrics; references stay valid for its life, but for those that are removed. Asking again for the same name and labels gives the
// same object.
class Registry {
 public:
  Counter& counter(std::string name, std::string help, std::string labels = {});
  Gauge& gauge(std::string name, std::string help, std::string labels = {});
  Histogram& histogram(std::string name, std::string help, std::string labels = {});
  // What it is of is there no more, and neither is its sample.
  void remove(const Gauge& gauge);
  [[nodiscard]] std::string render() const;

 private:
  template <class Metric>
  struct Named {
    std::string name, help, labels;
    Metric metric{};
  };
  template <class Metric>
  Metric& find_or_add(std::list<Named<Metric>>& all, std::string name, std::string help, std::string labels);

  mutable std::mutex mutex_;
  std::list<Named<Counter>> counters_;
  std::list<Named<Gauge>> gauges_;
  std::list<Named<Histogram>> histograms_;
};

}  // namespace baton::metrics
