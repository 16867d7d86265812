// Events are stored in pages, and everybody sees rows.
#include "tests/contract/store/fixture.hpp"

namespace baton::contract::events_test {
namespace {

using namespace workflow;

class Events : public StoreContract {
 protected:
  // Of the first job, by a commit of their own.
  void happen(std::int64_t from, std::int64_t last) {
    WriteSet w;
    for (std::int64_t id = from; id <= last; ++id) w.events_new.push_back(event(1, id));
    commit(w);
    ASSERT_TRUE(store->follow());
  }
  std::vector<std::int64_t> ids(std::int64_t after, std::size_t limit) {
    std::vector<std::int64_t> found;
    const auto events = database.reads().value()->timeline(job_id(1), after, limit).value();
    for (const Event& each : events) found.push_back(each.event_id);
    return found;
  }
};

class EventsOnAll : public Events {};
INSTANTIATE_TEST_SUITE_P(All, EventsOnAll, every_store(), name_of);

TEST_P(EventsOnAll, ComeInTheirOrderAcrossPages) {
  happen(1, 600);
  happen(601, 601);
  happen(602, 4'000);
  EXPECT_EQ(ids(0, 3), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(ids(254, 4), (std::vector<std::int64_t>{255, 256, 257, 258}));
  EXPECT_EQ(ids(599, 3), (std::vector<std::int64_t>{600, 601, 602}));
  const auto all = ids(0, 10'000);
  ASSERT_EQ(all.size(), 4'000u);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int64_t>(i + 1));
  EXPECT_TRUE(ids(4'000, 5).empty());
}

TEST_P(EventsOnAll, ComeBackAsTheyWereWritten) {
  WriteSet w;
  w.events_new = {event(1, 7), event(2, 8), event(1, 9)};
  w.events_new[0].node_id = "a \"quoted\" né";
  w.events_new[0].event_data = Json{R"({"x":[1.50,{"y":"A \"B\""}],"z":null})"};
  w.events_new[2].node_id.reset();
  w.events_new[2].event_data.reset();
  commit(w);
  ASSERT_TRUE(store->follow());
  const auto found = database.reads().value()->timeline(job_id(1), 0, 10).value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(same(w.events_new[0], found[0]));
  EXPECT_TRUE(same(w.events_new[2], found[1]));
}

// As deep as a request may be, and what PostgreSQL does not look into.
TEST_P(EventsOnAll, OfAnyDataCanBeRead) {
  std::string deep = "1";
  for (int i = 0; i < 64; ++i) deep = "[" + deep + "]";
  WriteSet w;
  w.events_new = {event(1, 1), event(1, 2), event(1, 3)};
  w.events_new[0].event_data = Json{deep};
  w.events_new[1].event_data = Json{R"({"x":"\u0000"})"};
  w.events_new[2].event_data = Json{"\"" + std::string(100'000, 'x') + "\""};
  commit(w);
  ASSERT_TRUE(store->follow());
  const auto found = database.reads().value()->timeline(job_id(1), 0, 10).value();
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same(w.events_new[i], found[i])) << i;
  if (database.type() != StoreType::postgres) return;
  EXPECT_EQ(database.ask("SELECT CAST(count(event_type) AS text) FROM dag_job_events"), std::vector<std::string>{"3"});
}

class EventsBySql : public Events {};
INSTANTIATE_TEST_SUITE_P(All, EventsBySql, ::testing::Values(StoreType::sqlite_journal, StoreType::postgres_journal), name_of);

TEST_P(EventsBySql, AreRowsOfAViewWithThoseOfBefore) {
  happen(100, 400);
  database.execute("INSERT INTO dag_job_event_rows(job_id,event_id,event_type,node_id,created_at,event_data) VALUES('" +
                   job_id(1).value + "',5,'job_created',NULL,'2026-01-31T08:00:00.000Z','{\"by\":\"hand\"}')");
  // A page as versions 9 and 10 of the schema have them.
  database.execute("INSERT INTO dag_job_pages(job_id,last_event_id,events) VALUES('" + job_id(1).value +
                   "',7,'[[6,\"node_completed\",\"a\",\"2026-01-31T08:00:01.250Z\"],[7,\"job_completed\",null,\"2026-01-31T08:00:02.000Z\"]]')");
  EXPECT_EQ(ids(0, 5), (std::vector<std::int64_t>{5, 6, 7, 100, 101}));
  EXPECT_EQ(database.reads().value()->timeline(job_id(1), 5, 1).value().at(0).created_at, from_iso_or_utc("2026-01-31T08:00:01.250Z"));
  const std::string of_job = " FROM dag_job_events WHERE job_id='" + job_id(1).value + "'";
  EXPECT_EQ(database.ask("SELECT CAST(count(*) AS text)" + of_job), std::vector<std::string>{"304"});
  EXPECT_EQ(from_iso_or_utc(database.ask("SELECT created_at" + of_job + " AND event_id=6").at(0)), from_iso_or_utc("2026-01-31T08:00:01.250Z"));
  const Event expected = event(1, 400);
  const std::string last = of_job + " AND event_id=400";
  EXPECT_EQ(database.ask("SELECT event_type" + last), std::vector{std::string(name(expected.event_type))});
  EXPECT_EQ(database.ask("SELECT node_id" + last), std::vector{expected.node_id.value_or("")});
  EXPECT_EQ(database.ask("SELECT CAST(event_data AS text)" + last), std::vector{expected.event_data->text});
  EXPECT_EQ(from_iso_or_utc(database.ask("SELECT created_at" + last).at(0)), expected.created_at);
}

}  // namespace
}  // namespace baton::contract::events_test
