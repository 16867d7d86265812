#include "core/call/call.hpp"

#include <gtest/gtest.h>

namespace baton::call {
namespace {

const Time noon = *from_iso("2026-03-01T12:00:00Z");

EventRow row(std::int64_t version, const Event& event) {
  return {.tenant_id = Tenant{"acme"},
          .service_call_id = CallId{"018f"},
          .version = version,
          .event_type = type_of(event),
          .occurred_at = noon,
          .correlation_id = "018f",
          .causation_id = "cause-" + std::to_string(version),
          .data = to_json(event)};
}

const Event submitted = Submitted{"charge",
                                  Json{R"({"method":"POST","url":"https://pay.example/1"})"},
                                  noon,
                                  {"a\"b", "z"},
                                  "https://pay.example:443",
                                  "017f"};

TEST(ServiceCall, EveryEventReadsBackAsItWasWritten) {
  const std::vector<Event> all{submitted, Scheduled{noon}, Started{noon},
                               Succeeded{noon, Json{R"({"status":200})"}},
                               Failed{noon, error_meta("Timeout", "after 30 s", R"("status":0)")}};
  for (const Event& event : all) {
    const auto read = read_event(type_of(event), to_json(event));
    ASSERT_TRUE(read) << to_json(event).text;
    EXPECT_EQ(read->index(), event.index());
    EXPECT_EQ(to_json(*read), to_json(event));
  }
  EXPECT_FALSE(read_event(EventType::scheduled, Json{R"({"dueAt":"soon"})"}));
  EXPECT_TRUE(read_event(EventType::scheduled, to_json(Scheduled{.due_at = Time{}})));  // 1970 is a time like any other
  EXPECT_FALSE(read_event(EventType::scheduled, Json{"{}"}));
  EXPECT_FALSE(read_event(EventType::started, Json{"[]"}));
}

TEST(ServiceCall, IsTheFoldOfItsEvents) {
  const std::vector<EventRow> events{row(1, submitted), row(2, Scheduled{noon}), row(3, Started{noon}),
                                     row(4, Succeeded{noon, Json{R"({"status":200})"}})};
  const auto call = fold(events);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->version, 4);
  EXPECT_EQ(call->status, Status::succeeded);
  EXPECT_EQ(call->name, "charge");
  EXPECT_EQ(read_tags(*call), (std::vector<std::string>{"a\"b", "z"}));
  EXPECT_EQ(call->repeat_of, "017f");
  EXPECT_EQ(call->started_by, "cause-3");
  EXPECT_EQ(call->response_meta, Json{R"({"status":200})"});
}

TEST(ServiceCall, AStreamWithAGapIsNone) {
  EXPECT_FALSE(fold({}));
  EXPECT_FALSE(fold({row(1, Scheduled{noon})}));
  EXPECT_FALSE(fold({row(1, submitted), row(3, Scheduled{noon})}));
  EXPECT_FALSE(fold({row(1, submitted), row(1, Scheduled{noon})}));
}

TEST(ServiceCall, BeginsWithWhatItIsAndItsTime) {
  const CallKey key{Tenant{"acme"}, CallId{"018f"}};
  const Time later = noon + std::chrono::hours{1};
  Submission made = submit(key, std::get<Submitted>(submitted), later, "order-7", noon);
  EXPECT_EQ(made.call.key(), key);
  EXPECT_EQ(made.call.version, 0);
  EXPECT_EQ(made.call.correlation_id, "order-7");
  EXPECT_EQ(type_of(made.events[0]), EventType::submitted);
  EXPECT_EQ(std::get<Submitted>(made.events[0]).submitted_at, noon);
  EXPECT_EQ(std::get<Submitted>(made.events[0]).name, "charge");
  EXPECT_EQ(std::get<Scheduled>(made.events[1]).due_at, later);
  const auto call = fold({row(1, made.events[0]), row(2, made.events[1])});
  ASSERT_TRUE(call);
  EXPECT_EQ(call->status, Status::scheduled);
}

TEST(ServiceCall, IsDueAtOnceAndCorrelatedByItsIdUnlessToldOtherwise) {
  const Submission made =
      submit({Tenant{"acme"}, CallId{"018f"}}, std::get<Submitted>(submitted), std::nullopt, "", noon);
  EXPECT_EQ(made.call.correlation_id, "018f");
  EXPECT_EQ(std::get<Scheduled>(made.events[1]).due_at, noon);
}

TEST(ServiceCall, ThatIsGivenTheTimeItHasDoesNotChange) {
  Call call = *fold({row(1, submitted), row(2, Scheduled{noon})});
  const auto same = reschedule(call, noon, "bo", "");
  ASSERT_TRUE(same);
  EXPECT_FALSE(*same);
  apply(row(3, Started{noon}), Started{noon}, call);
  EXPECT_EQ(reschedule(call, noon, "bo", "").error(), Conflict::not_scheduled);
}

TEST(ServiceCall, IsStartedOnceAndNotBeforeItsTime) {
  Call call = *fold({row(1, submitted), row(2, Scheduled{noon})});
  EXPECT_EQ(start(call, noon - Duration{1}).error(), Conflict::not_due);
  ASSERT_TRUE(start(call, noon));
  apply(row(3, Started{noon}), Started{noon}, call);
  EXPECT_EQ(start(call, noon).error(), Conflict::not_scheduled);
  EXPECT_EQ(cancel(call, "ada", "", noon).error(), Conflict::not_scheduled);
  EXPECT_EQ(reschedule(call, noon, "", "").error(), Conflict::not_scheduled);
}

TEST(ServiceCall, IsSentByWhoeverStartedItAndByNobodyElse) {
  Call call = *fold({row(1, submitted), row(2, Scheduled{noon})});
  EXPECT_EQ(ask_to_start(call, true, "cause-3", noon - Duration{1}).error(), Conflict::not_due);
  const auto first = ask_to_start(call, true, "cause-3", noon);
  ASSERT_TRUE(first && first->event);
  EXPECT_TRUE(first->is_sent);
  EXPECT_EQ(type_of(*first->event), EventType::started);
  apply(row(3, *first->event), *first->event, call);
  const auto again = ask_to_start(call, true, "cause-3", noon);
  ASSERT_TRUE(again) << "the answer was lost";
  EXPECT_FALSE(again->event);
  EXPECT_TRUE(again->is_sent);
  EXPECT_EQ(ask_to_start(call, true, "another", noon).error(), Conflict::not_scheduled);
  EXPECT_EQ(ask_to_start(call, false, "cause-3", noon).error(), Conflict::not_scheduled) << "there is nothing to send";
}

TEST(ServiceCall, FailsWhenItIsDueIfItsRequestIsLost) {
  const Call call = *fold({row(1, submitted), row(2, Scheduled{noon})});
  EXPECT_EQ(ask_to_start(call, false, "s", noon - Duration{1}).error(), Conflict::not_due);
  const auto lost = ask_to_start(call, false, "s", noon);
  ASSERT_TRUE(lost && lost->event);
  EXPECT_FALSE(lost->is_sent);
  const auto* failed = std::get_if<Failed>(&*lost->event);
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->error_meta.text.contains(request_lost)) << failed->error_meta.text;
}

TEST(ServiceCall, EndsOnce) {
  Call call = *fold({row(1, submitted), row(2, Scheduled{noon})});
  EXPECT_EQ(finish(call, true, Json{"{}"}, noon).error(), Conflict::not_running);
  apply(row(3, Started{noon}), Started{noon}, call);
  ASSERT_TRUE(finish(call, false, Json{"{}"}, noon));
  apply(row(4, Failed{noon, Json{"{}"}}), Failed{noon, Json{"{}"}}, call);
  EXPECT_EQ(finish(call, true, Json{"{}"}, noon).error(), Conflict::not_running);
}

TEST(ServiceCall, ThatWaitsMayBeCancelledOrRescheduled) {
  Call call = *fold({row(1, submitted), row(2, Scheduled{noon})});
  const auto later = reschedule(call, noon + std::chrono::hours{1}, "bo", "too early");
  ASSERT_TRUE(later && *later);
  apply(row(3, **later), **later, call);
  EXPECT_EQ(to_json(**later).text, R"({"dueAt":"2026-03-01T13:00:00.000Z","by":"bo","reason":"too early"})");
  EXPECT_EQ(start(call, noon).error(), Conflict::not_due);
  EXPECT_EQ(repeat(call, true).error(), Conflict::not_over);
  const auto gone = cancel(call, "ada", "not needed", noon);
  ASSERT_TRUE(gone);
  apply(row(4, *gone), *gone, call);
  EXPECT_EQ(call.status, Status::failed);
  EXPECT_EQ(call.error_meta->text, R"({"kind":"Cancelled","message":"cancelled by ada: not needed"})");
}

TEST(ServiceCall, IsRepeatedWhenItHasEndedAndItsRequestIsStillStored) {
  Call call = *fold({row(1, submitted), row(2, Scheduled{noon}), row(3, Started{noon})});
  for (const bool has_request : {true, false})
    EXPECT_EQ(repeat(call, has_request).error(), Conflict::not_over) << has_request;
  apply(row(4, Failed{noon, Json{"{}"}}), Failed{noon, Json{"{}"}}, call);
  EXPECT_TRUE(repeat(call, true));
  EXPECT_EQ(repeat(call, false).error(), Conflict::request_lost);
}

}  // namespace
}  // namespace baton::call
