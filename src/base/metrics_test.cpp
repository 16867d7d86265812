#include "base/metrics.hpp"

#include <gtest/gtest.h>

namespace baton::metrics {
namespace {

TEST(MetricsTest, the_same_name_and_labels_are_the_same_metric) {
  Registry registry;
  registry.counter("a_total", "A.", "k=\"1\"").add(2);
  registry.counter("a_total", "A.", "k=\"1\"").add();
  EXPECT_EQ(registry.counter("a_total", "A.", "k=\"1\"").value(), 3U);
  EXPECT_EQ(registry.counter("a_total", "A.", "k=\"2\"").value(), 0U);
}

TEST(MetricsTest, samples_of_one_name_stand_together_under_one_heading) {
  Registry registry;
  registry.counter("a_total", "A.", "k=\"1\"").add();
  registry.counter("b_total", "B.").add(5);
  registry.counter("a_total", "A.", "k=\"2\"").add(2);
  registry.gauge("g", "G.").set(-1);
  EXPECT_EQ(registry.render(),
            "# HELP a_total A.\n# TYPE a_total counter\na_total{k=\"1\"} 1\na_total{k=\"2\"} 2\n"
            "# HELP b_total B.\n# TYPE b_total counter\nb_total 5\n"
            "# HELP g G.\n# TYPE g gauge\ng -1\n");
}

TEST(MetricsTest, a_gauge_may_be_removed_and_others_stay_where_they_are) {
  Registry registry;
  auto& first = registry.gauge("g", "G.", "k=\"1\"");
  auto& second = registry.gauge("g", "G.", "k=\"2\"");
  registry.remove(first);
  second.set(2);
  EXPECT_EQ(registry.render(), "# HELP g G.\n# TYPE g gauge\ng{k=\"2\"} 2\n");
  registry.remove(second);
  EXPECT_EQ(registry.render(), "");
}

TEST(MetricsTest, a_histogram_counts_upwards) {
  Registry registry;
  auto& histogram = registry.histogram("h_seconds", "H.", "r=\"x\"");
  histogram.observe(std::chrono::milliseconds{1});
  histogram.observe(std::chrono::seconds{60});
  const auto text = registry.render();
  EXPECT_NE(text.find("h_seconds_bucket{r=\"x\",le=\"0.0005\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h_seconds_bucket{r=\"x\",le=\"0.001\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h_seconds_bucket{r=\"x\",le=\"+Inf\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h_seconds_sum{r=\"x\"} 60.001\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace baton::metrics
