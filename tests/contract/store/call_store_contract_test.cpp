// Service calls on every store: events with optimistic concurrency, the fold beside them, and the window of a
// destination.
#include "core/call/call.hpp"
#include "tests/contract/store/fixture.hpp"

namespace baton::contract::call_store_contract_test {
namespace {

using namespace call;

class CallStoreContract : public testing::TestWithParam<StoreType> {
 protected:
  void SetUp() override { last_commit_ = store->open(partition).value().last_commit; }

  static CallKey key(int n, const std::string& tenant = "acme") {
    return {Tenant{tenant}, CallId{"0192f0c0-0000-7000-8000-" + std::to_string(100'000'000'000 + n)}};
  }
  static EventRow event(const CallKey& of, std::int64_t version, const Event& what) {
    return {of.tenant, of.id, version, type_of(what), at(version), of.id.value, "cause", to_json(what)};
  }
  // Two events and what they come to.
  static Writes submitted(int n, Time due, const std::string& origin = "http://a:80",
                          const std::string& tenant = "acme", const std::vector<std::string>& tags = {}) {
    const CallKey of = key(n, tenant);
    Writes w;
    w.events_new = {
        event(
            of, 1,
            Submitted{"call " + std::to_string(n), Json{R"({"url":"http://a/"})"}, at(1), tags, origin, {}}),
        event(of, 2, Scheduled{due})};
    w.calls_new = {*fold(w.events_new)};
    w.requests_new = {{of.tenant, of.id, "POST", "http://a/", R"([["A","b"]])", "hällo", 1, 500, 2,
                       Json{R"({"url":"http://p/"})"}}};
    for (const std::string& tag : tags) w.tags_new.push_back({of.tenant, tag, of.id});
    return w;
  }
  Result<> try_commit(const Writes& calls) {
    WriteSet writes;
    writes.calls = calls;
    auto done = store->commit(writes, last_commit_ + 1);
    if (done) ++last_commit_;
    return done;
  }
  void commit(const Writes& calls) { ASSERT_TRUE(try_commit(calls)) << try_commit(calls).error().message; }

  // The tables, which show what was committed.
  std::unique_ptr<Reads> shown() {
    EXPECT_TRUE(store->follow());
    return database.reads().value();
  }

  Database database{GetParam()};
  std::unique_ptr<Store> store = database.store();
  std::int64_t last_commit_ = 0;
};
INSTANTIATE_TEST_SUITE_P(On, CallStoreContract, every_store(), name_of);

TEST_P(CallStoreContract, WhatIsWrittenIsLoaded) {
  Writes w = submitted(1, at(5));
  w.keys_new = {{Tenant{"acme"}, "k", key(1).id, "hash"}};
  commit(w);
  const auto loaded = store
                          ->load(call::LoadRequest{.calls = {key(1), key(1), key(2)},
                                                   .requests = {key(1)},
                                                   .idempotency_keys = {{Tenant{"acme"}, "k"}}})
                          .value();
  EXPECT_TRUE(loaded.without_row.empty());
  ASSERT_EQ(loaded.calls.size(), 1U);
  EXPECT_EQ(loaded.calls[0], w.calls_new[0]);
  ASSERT_EQ(loaded.requests.size(), 1U);
  EXPECT_EQ(loaded.requests[0].body, "hällo");
  EXPECT_EQ(loaded.requests[0].body_is_base64, 1);
  EXPECT_EQ(loaded.requests[0].probe, w.requests_new[0].probe);
  ASSERT_EQ(loaded.idempotency_keys.size(), 1U);
  EXPECT_EQ(loaded.idempotency_keys[0].request_hash, "hash");
  EXPECT_TRUE(store->load(call::LoadRequest{.calls = {key(1, "other")}}).value().calls.empty());
}

TEST_P(CallStoreContract, AnEventOfAVersionThatIsThereIsAConflictAndNothingIsWritten) {
  commit(submitted(1, at(5)));
  const auto before = store->load(call::LoadRequest{.calls = {key(1)}}).value().calls.at(0);
  Writes twice;
  twice.events_new = {event(key(1), 2, Started{at(9)})};
  twice.calls_changed = {before};
  twice.calls_changed[0].status = Status::running;
  const auto done = try_commit(twice);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
  EXPECT_EQ(store->load(call::LoadRequest{.calls = {key(1)}}).value().calls.at(0), before);
}

TEST_P(CallStoreContract, ACallIsTheFoldOfItsStoredEvents) {
  commit(submitted(1, at(5), "http://a:80", "acme", {"x", "y"}));
  auto call = store->load(call::LoadRequest{.calls = {key(1)}}).value().calls.at(0);
  Writes w;
  w.events_new = {event(key(1), 3, Started{at(6)}),
                  event(key(1), 4, Failed{at(7), error_meta("Timeout", "too \"slow\" ü")})};
  for (const EventRow& row : w.events_new) apply(row, *read_event(row.event_type, row.data), call);
  w.calls_changed = {call};
  commit(w);
  auto reads = shown();
  EXPECT_EQ(*fold(reads->call_events(key(1)).value()), *reads->service_call(key(1)).value());
  EXPECT_EQ(reads->call_keys({}, 10).value(), std::vector{key(1)});
  EXPECT_EQ(reads->call_keys(key(1), 10).value(), std::vector<CallKey>{});
  EXPECT_TRUE(reads->has_tag(key(1), "x").value());
  EXPECT_FALSE(reads->has_tag(key(1), "z").value());
  EXPECT_EQ(reads->count_stray_rows().value(), 0);
}

TEST_P(CallStoreContract, TheCallsToADestinationAreReadInTheOrderOfTime) {
  commit(submitted(1, at(30)));
  commit(submitted(2, at(10)));
  commit(submitted(3, at(20)));
  commit(submitted(4, at(5), "http://b:80"));
  commit(submitted(5, at(1), "http://a:80", "zeta"));
  auto reads = shown();
  const Destination a{Tenant{"acme"}, "http://a:80"}, b{Tenant{"acme"}, "http://b:80"},
      z{Tenant{"zeta"}, "http://a:80"};
  const auto destinations_due = [&](Time after, Time until) {
    const auto found = reads->destinations_due(after, until).value();
    return std::map(found.begin(), found.end());
  };
  using Destinations = std::map<Destination, Time>;
  const Time never = Time{} - Duration{1};
  EXPECT_EQ(destinations_due(never, at(30)), (Destinations{{a, at(10)}, {b, at(5)}, {z, at(1)}}));
  EXPECT_EQ(destinations_due(never, at(5)), (Destinations{{b, at(5)}, {z, at(1)}}));
  EXPECT_EQ(destinations_due(at(10), at(30)), (Destinations{{a, at(20)}}));
  const auto due = [&](const Due& after, Time until, std::size_t limit) {
    return reads->due_calls({a, after, until, limit}).value();
  };
  EXPECT_EQ(due({}, at(30), 2), (std::vector<Due>{{at(10), key(2).id}, {at(20), key(3).id}}));
  EXPECT_EQ(due({at(20), key(3).id}, at(30), 2), (std::vector<Due>{{at(30), key(1).id}}));
  EXPECT_EQ(due({at(20), key(3).id}, at(29), 2), std::vector<Due>{});
}

TEST_P(CallStoreContract, ListsAreFilteredNewestFirst) {
  for (int n = 1; n <= 5; ++n)
    commit(submitted(n, at(n * 10), "http://a:80", "acme",
                     n % 2 == 0 ? std::vector<std::string>{"even", "t"} : std::vector<std::string>{"t"}));
  auto reads = shown();
  const auto ids = [&](CallFilter filter, const std::optional<Due>& last = {}, std::size_t limit = 10) {
    filter.tenant = Tenant{"acme"};
    std::string text;
    const auto page = reads->calls(filter, last, limit).value();
    for (const Call& each : page)
      text += each.service_call_id.value.back();
    return text;
  };
  EXPECT_EQ(ids({}), "54321");
  EXPECT_EQ(ids({}, Due{at(40), key(4).id}, 2), "32");
  EXPECT_EQ(ids({.tags = {"even"}}), "42");
  EXPECT_EQ(ids({.tags = {"even", "t"}}), "42");
  EXPECT_EQ(ids({.tags = {"even", "odd"}}), "");
  EXPECT_EQ(ids({.name = "call 3"}), "3");
  EXPECT_EQ(ids({.status = Status::running}), "");
  EXPECT_EQ(ids({.status = Status::scheduled, .due_from = at(20), .due_until = at(40)}), "23");
  EXPECT_EQ(ids({.due_from = at(20)}, {}, 2), "23") << "of a range of time the earliest is first";
  EXPECT_EQ(ids({.due_from = at(20)}, Due{at(30), key(3).id}, 2), "45");
  EXPECT_EQ(ids({.tags = {"even"}, .due_until = at(40)}), "2");
}

// --- the row is a snapshot of the stream, and may be lost

class LostRows : public CallStoreContract {
 protected:
  // Submitted, put off, and begun.
  Call begin(int n) {
    commit(submitted(n, at(5), "http://a:80", "acme", {"x", "y"}));
    Call call = store->load(call::LoadRequest{.calls = {key(n)}}).value().calls.at(0);
    Writes w;
    w.events_new = {event(key(n), 3, Scheduled{at(6)}), event(key(n), 4, Started{at(7)})};
    for (const EventRow& row : w.events_new) apply(row, *read_event(row.event_type, row.data), call);
    w.calls_changed = {call};
    commit(w);
    return call;
  }
  void overwrite(const Call& row) {
    Writes w;
    w.calls_rebuilt = {row};
    commit(w);
  }
  void expect_rebuilt(const Call& right, const std::string& what) {
    const auto loaded = store->load(call::LoadRequest{.calls = {right.key()}}).value();
    ASSERT_EQ(loaded.calls.size(), 1U) << what;
    EXPECT_EQ(loaded.calls[0], right) << what;
    EXPECT_EQ(loaded.without_row, std::vector{right.key()}) << what;
    overwrite(loaded.calls[0]);
    EXPECT_TRUE(store->load(call::LoadRequest{.calls = {right.key()}}).value().without_row.empty()) << what;
  }
};
INSTANTIATE_TEST_SUITE_P(On, LostRows, testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres), name_of);

class LostRowsBySql : public LostRows {};
INSTANTIATE_TEST_SUITE_P(On, LostRowsBySql, testing::Values(StoreType::sqlite, StoreType::postgres), name_of);

// Its times are texts, so that another program may write what is none.
class LostRowsOnSqlite : public LostRows {};
INSTANTIATE_TEST_SUITE_P(On, LostRowsOnSqlite, testing::Values(StoreType::sqlite), name_of);

TEST_P(LostRows, ADeletedOneIsFoldedFromTheEvents) {
  const Call right = begin(1);
  database.lose_rows_of_calls();
  expect_rebuilt(right, "deleted");
}

TEST_P(LostRows, ADamagedOneIsNotBelieved) {
  const Call right = begin(1);
  const auto damaged = [&](const std::string& what, auto damage) {
    Call row = right;
    damage(row);
    overwrite(row);
    expect_rebuilt(right, what);
  };
  damaged("another status", [](Call& row) { row.status = Status::scheduled; });
  damaged("behind", [](Call& row) { row.version = 3; });
  damaged("ahead", [](Call& row) { row.version = 5; });
  damaged("another start", [](Call& row) { row.started_by = "somebody else"; });
  damaged("unreadable tags", [](Call& row) { row.tags = "[\"x"; });
  damaged("tags of another kind", [](Call& row) { row.tags = "{}"; });
  if (GetParam() != StoreType::postgres)  // which takes no such thing
    damaged("an unreadable document", [](Call& row) { row.request_spec = Json{"{\"url\":"}; });
}

TEST_P(LostRowsBySql, OneThatCannotBeReadIsFoldedFromTheEvents) {
  const Call right = begin(1);
  database.execute("UPDATE service_calls SET status='Banana'");
  expect_rebuilt(right, "status");
}

TEST_P(LostRowsOnSqlite, OneWithATimeThatCannotBeReadIsFoldedFromTheEvents) {
  const Call right = begin(1);
  for (const char* column : {"due_at", "submitted_at", "started_at"}) {
    database.execute("UPDATE service_calls SET " + std::string(column) + "='garbage'");
    expect_rebuilt(right, column);
  }
}

TEST_P(LostRows, AreComparedWithTheWholeStreamWhenThatIsAskedFor) {
  const Call right = begin(1);
  const auto ask = [&] { return store->load(call::LoadRequest{.streams = {right.key()}}).value(); };
  EXPECT_TRUE(ask().without_row.empty());
  EXPECT_EQ(ask().calls, std::vector{right});
  Call row = right;
  row.name = "the last event does not say";
  overwrite(row);
  EXPECT_EQ(ask().without_row, std::vector{right.key()});
  EXPECT_EQ(ask().calls, std::vector{right});
}

TEST_P(LostRows, AreNotMadeUpFromAStreamThatCannotBeFolded) {
  Writes w = submitted(1, at(5));
  w.events_new[1].version = 3;  // a gap
  commit(w);
  const auto loaded = store->load(call::LoadRequest{.calls = {key(1)}});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::invalid) << loaded.error().message;
}

TEST_P(LostRowsBySql, AreSeenByReaders) {
  const Call right = begin(1), other = begin(2);
  auto reads = shown();
  const auto without_row = [&](std::size_t page) {
    std::vector<CallKey> all;
    for (std::optional<EventKey> after = EventKey{}; after;) {
      auto found = reads->streams_without_row(*after, page).value();
      all.insert(all.end(), found.without_row.begin(), found.without_row.end());
      after = found.last;
    }
    return all;
  };
  EXPECT_EQ(without_row(100), std::vector<CallKey>{});
  Call row = right;
  row.tags = "[";
  overwrite(row);
  const auto page = reads->calls({.tenant = Tenant{"acme"}}, {}, 10);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(*page, (std::vector{other, right}));
  database.execute("UPDATE service_calls SET status='Banana' WHERE name='call 1'");
  EXPECT_EQ(reads->calls({.tenant = Tenant{"acme"}}, {}, 10).value(), (std::vector{other, right}));
  EXPECT_EQ(reads->service_call(key(1)).value(), right);
  EXPECT_FALSE(reads->call_row(key(1)));
  database.execute("DELETE FROM service_calls WHERE name='call 2'");
  EXPECT_EQ(reads->service_call(key(2)).value(), other);
  EXPECT_EQ(reads->service_call(key(3)).value(), std::nullopt);
  for (const std::size_t size : {1, 3, 4, 5, 100})
    EXPECT_EQ(without_row(size), (std::vector{key(1), key(2)})) << size;
  database.execute("UPDATE service_calls SET status='Running', version=3 WHERE name='call 1'");
  EXPECT_EQ(without_row(100), (std::vector{key(1), key(2)}));
}

TEST_P(LostRowsOnSqlite, WithATimeThatCannotBeReadAreAskedAboutEarly) {
  commit(submitted(1, at(10)));
  commit(submitted(2, at(20)));
  database.execute("UPDATE service_calls SET due_at=substr(due_at,1,20)||'xxxx' WHERE name='call 1'");
  auto reads = shown();
  const Destination to{Tenant{"acme"}, "http://a:80"};
  const auto destinations = reads->destinations_due(at(0), at(30));
  ASSERT_TRUE(destinations) << destinations.error().message;
  EXPECT_EQ(destinations->size(), 1U);
  const auto due = reads->due_calls({to, {}, at(1'000), 10});
  ASSERT_TRUE(due) << due.error().message;
  EXPECT_EQ(due->size(), 2U);
}

}  // namespace
}  // namespace baton::contract::call_store_contract_test
