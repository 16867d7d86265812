// Whatever a filter or an action says, reading and evaluating it must not crash and must end; a problem must
// have a place in the text; and a condition and its NOT must agree.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "core/message/rule.hpp"

namespace {

namespace message = baton::message;

message::Envelope fixed_envelope() {
  message::Envelope envelope;
  envelope.message_id = "m-1";
  envelope.label = "order_\xc3\xa9";
  envelope.enqueued_time = baton::from_millis(1'700'000'000'000);
  envelope.time_to_live = baton::Duration(60'000);
  envelope.sequence_number = 7;
  envelope.properties = {{"a", std::int64_t{3}},
                         {"b", -2.5},
                         {"c", true},
                         {"i", std::numeric_limits<std::int64_t>::min()},
                         {"n", message::Null{}},
                         {"o", message::Opaque{"\x01"}},
                         {"s", std::string("it's \xf0\x9f\x98\x80 %_")},
                         {"t", baton::from_millis(std::numeric_limits<std::int64_t>::max())},
                         {"l", std::string(30'000, 'a')},
                         {"WorkerId", std::string("w")}};
  return envelope;
}

void check(const message::Problem& problem, std::string_view text) {
  ENSURE(problem.offset <= text.size());
  ENSURE(!problem.message.empty() && !message::describe(problem, text).empty());
}

void check_filter(std::string_view text, const message::Envelope& envelope,
                  const message::Properties& parameters) {
  const message::NewId new_id = [] { return std::string("id"); };
  const auto filter = message::SqlFilter::parse(text, parameters);
  if (!filter) return check(filter.error(), text);
  ENSURE(filter->text() == text);
  const auto truth = filter->evaluate(envelope, new_id);
  if (!truth) check(truth.error(), text);
  if (const auto constant = filter->equality("workerid"); constant && truth)
    ENSURE(*truth == (*constant == "w" ? message::Truth::yes : message::Truth::no));
  const auto negated = message::SqlFilter::parse("NOT(" + std::string(text) + ')', parameters);
  if (!negated) return check(negated.error(), "NOT(" + std::string(text) + ')');  // too long or too deep now
  const auto other = negated->evaluate(envelope, new_id);
  ENSURE(truth.has_value() == other.has_value());
  if (truth) ENSURE((*truth == message::Truth::yes) == (*other == message::Truth::no));
  if (truth) ENSURE((*truth == message::Truth::unknown) == (*other == message::Truth::unknown));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const message::Envelope envelope = fixed_envelope();
  static const message::Properties parameters{{"@p", std::string("w")}, {"q", baton::Duration(5)}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_filter(text, envelope, parameters);
  const auto action = message::SqlAction::parse(text, parameters);
  if (!action) {
    check(action.error(), text);
  } else if (const auto changed = action->apply(envelope); !changed) {
    check(changed.error(), text);
  }
  return 0;
}
