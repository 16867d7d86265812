#include "cli/terminal/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>

#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace json = boost::json;
namespace {

struct Look {
  std::string_view type;
  std::string_view mark;
  std::string_view plain;
  std::string_view words;
  Colour colour;
};

constexpr std::array looks{
    Look{"job_created", "•", "*", "job created", Colour::dim},
    Look{"job_started", "▶", ">", "job started", Colour::blue},
    Look{"job_completed", "✓", "+", "job completed", Colour::green},
    Look{"job_failed", "✗", "x", "job failed", Colour::red},
    Look{"job_cancelled", "■", "#", "job cancelled", Colour::yellow},
    Look{"job_paused", "‖", "=", "job paused", Colour::yellow},
    Look{"job_resumed", "▶", ">", "job resumed", Colour::blue},
    Look{"job_retried", "↻", "~", "job retried", Colour::yellow},
    Look{"node_ready", "•", "*", "ready", Colour::dim},
    Look{"node_dispatched", "→", ">", "dispatched", Colour::dim},
    Look{"node_started", "▶", ">", "started", Colour::blue},
    Look{"node_completed", "✓", "+", "completed", Colour::green},
    Look{"node_failed", "✗", "x", "failed", Colour::red},
    Look{"node_retry", "↻", "~", "will be tried again", Colour::yellow},
    Look{"node_timeout", "✗", "x", "timed out", Colour::red},
    Look{"node_lease_expired", "✗", "x", "lost its worker", Colour::yellow},
    Look{"node_cancelled", "■", "#", "cancelled", Colour::yellow},
    Look{"node_skipped", "○", "-", "skipped", Colour::dim},
    Look{"checkpoint", "•", "*", "checkpoint stored", Colour::dim},
};

// The part of the event's data that explains it: who, which way, and why.
std::string explanation(std::string_view data) {
  json::error_code error;
  const json::value value = json::parse(data, error);
  if (error || !value.is_object()) return "";
  const auto text = [&](std::string_view key) {
    const json::value* found = value.get_object().if_contains(key);
    return found != nullptr && found->is_string() ? one_line(found->get_string()) : "";
  };
  std::string all;
  if (const std::string by = text("by"); !by.empty()) all += " by " + by;
  if (const std::string branch = text("branch"); !branch.empty()) all += ": branch " + branch;
  for (const std::string_view key : {"error", "reason"})
    if (const std::string why = text(key); !why.empty()) return all + ": " + why;
  return all;
}

}  // namespace

std::string progress_line(const ProgressEvent& event, Duration since_start, bool marks, bool colour) {
  Look look{event.type, "•", "*", event.type, Colour::none};
  for (const Look& each : looks)
    if (each.type == event.type) look = each;
  const std::string_view mark = marks ? look.mark : look.plain;
  std::string line = fmt::format("{:>8.3f} s  {} ", static_cast<double>(since_start.count()) / 1000,
                                 paint(mark, look.colour, colour));
  if (!event.node_id.empty()) line += printable(event.node_id) + ' ';
  line += paint(look.words, look.colour, colour);
  return line + explanation(event.data);
}

Progress::Progress(std::FILE* stream)
    : stream_(stream), colour_(has_colour(stream)), marks_(isatty(fileno(stream)) == 1) {}

void Progress::show(const ProgressEvent& event) {
  if (!first_) first_ = event.at;
  fmt::print(stream_, "{}\n", progress_line(event, event.at - *first_, marks_, colour_));
  std::fflush(stream_);
}

}  // namespace baton::cli
