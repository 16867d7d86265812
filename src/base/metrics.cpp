#include "base/metrics.hpp"

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <string_view>

namespace baton::metrics {

namespace {

void heading(std::string& out, const std::string& name, const std::string& help, std::string_view type) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void sample(std::string& out, const std::string& name, const std::string& labels, auto value) {
  if (labels.empty()) {
    fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
  } else {
    fmt::format_to(std::back_inserter(out), "{}{{{}}} {}\n", name, labels, value);
  }
}

// The text format wants all samples of one name together, under one heading.
template <class All, class Print>
void render_by_name(std::string& out, const All& all, std::string_view type, Print print) {
  std::set<std::string_view> done;
  for (const auto& first : all) {
    if (!done.insert(first.name).second) continue;
    heading(out, first.name, first.help, type);
    for (const auto& each : all) {
      if (each.name == first.name) print(each);
    }
  }
}

}  // namespace

void Histogram::observe(std::chrono::nanoseconds took) {
  const double seconds = std::chrono::duration<double>(took).count();
  std::size_t bucket = 0;
  while (bucket < bounds.size() && seconds > bounds[bucket]) ++bucket;
  buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
  nanos_.fetch_add(static_cast<std::uint64_t>(took.count() < 0 ? 0 : took.count()),
                   std::memory_order_relaxed);
}

void Histogram::render(std::string& out, const std::string& name, const std::string& labels) const {
  const std::string comma = labels.empty() ? "" : ",";
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    count += buckets_[i].load(std::memory_order_relaxed);
    sample(out, name + "_bucket", fmt::format("{}{}le=\"{}\"", labels, comma, bounds[i]), count);
  }
  count += buckets_[bounds.size()].load(std::memory_order_relaxed);
  sample(out, name + "_bucket", labels + comma + "le=\"+Inf\"", count);
  sample(out, name + "_sum", labels, static_cast<double>(nanos_.load(std::memory_order_relaxed)) / 1e9);
  sample(out, name + "_count", labels, count);
}

template <class Metric>
Metric& Registry::find_or_add(std::list<Named<Metric>>& all, std::string name, std::string help,
                              std::string labels) {
  const std::lock_guard lock(mutex_);
  for (auto& each : all) {
    if (each.name == name && each.labels == labels) return each.metric;
  }
  auto& added = all.emplace_back();
  added.name = std::move(name);
  added.help = std::move(help);
  added.labels = std::move(labels);
  return added.metric;
}

Counter& Registry::counter(std::string name, std::string help, std::string labels) {
  return find_or_add(counters_, std::move(name), std::move(help), std::move(labels));
}

Gauge& Registry::gauge(std::string name, std::string help, std::string labels) {
  return find_or_add(gauges_, std::move(name), std::move(help), std::move(labels));
}

Histogram& Registry::histogram(std::string name, std::string help, std::string labels) {
  return find_or_add(histograms_, std::move(name), std::move(help), std::move(labels));
}

void Registry::remove(const Gauge& gauge) {
  const std::lock_guard lock(mutex_);
  gauges_.remove_if([&](const auto& each) { return &each.metric == &gauge; });
}

std::string Registry::render() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  render_by_name(out, counters_, "counter",
                 [&](const auto& each) { sample(out, each.name, each.labels, each.metric.value()); });
  render_by_name(out, gauges_, "gauge",
                 [&](const auto& each) { sample(out, each.name, each.labels, each.metric.value()); });
  render_by_name(out, histograms_, "histogram",
                 [&](const auto& each) { each.metric.render(out, each.name, each.labels); });
  return out;
}

}  // namespace baton::metrics
