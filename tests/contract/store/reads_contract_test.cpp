// The contract of ports/reads.hpp.
#include <algorithm>

#include "store/open.hpp"
#include "tests/contract/store/fixture.hpp"

namespace baton::contract::reads_contract_test {
namespace {

using namespace workflow;

class ReadsContract : public StoreContract {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StoreContract::SetUp());
    auto made = database.reads();
    ASSERT_TRUE(made) << made.error().message;
    reads = std::move(*made);
  }

  std::vector<JobId> list(const JobFilter& filter, std::size_t page_size) {
    std::vector<JobId> ids;
    std::optional<JobId> before;
    do {
      const auto page = reads->jobs(filter, before, page_size);
      EXPECT_TRUE(page) << page.error().message;
      if (!page) break;
      EXPECT_LE(page->jobs.size(), page_size);
      for (const Job& row : page->jobs) ids.push_back(row.job_id);
      before = page->next_before;
    } while (before);
    return ids;
  }

  // Of two tenants, in all statuses, of two workflows.
  static Job mixed_job(int n) {
    Job row = job(n);
    row.tenant = {n % 7 == 0 ? "other" : "default"};
    row.status = static_cast<JobStatus>(n % 5);
    row.workflow_id = n % 3 == 0 ? "w0" : "w1";
    return row;
  }

  std::unique_ptr<Reads> reads;
};

INSTANTIATE_TEST_SUITE_P(All, ReadsContract, ::testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres),
                         name_of);

TEST_P(ReadsContract, AJobIsSeenByItsTenantOnly) {
  WriteSet w;
  w.jobs_new = {job(1)};
  commit(w);
  const auto found = reads->job({"default"}, job_id(1));
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE(same(job(1), **found));
  EXPECT_EQ(reads->job({"other"}, job_id(1))->has_value(), false);
  EXPECT_EQ(reads->job({"default"}, job_id(2))->has_value(), false);
}

TEST_P(ReadsContract, NodesComeByIdUpToTheLimit) {
  WriteSet w;
  w.nodes_new = {node(1, "b"), node(1, "a"), node(1, "C"), node(2, "a")};
  commit(w);
  const auto nodes = reads->nodes(job_id(1), 10).value();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].node_id, "C");  // by bytes, whatever the locale of the server
  EXPECT_EQ(nodes[1].node_id, "a");
  EXPECT_TRUE(same(node(1, "b"), nodes[2]));
  EXPECT_EQ(reads->nodes(job_id(1), 2)->size(), 2u);
}

TEST_P(ReadsContract, NodesAreThoseOfTheDefinitionAndItemsTheChildrenOfOneFanOutByTheirIndex) {
  WriteSet w;
  w.nodes_new = {node(1, "split"), node(1, "split2"), child(2, "split", 0)};
  for (const int item : {10, 2, 0, 1, 9, 3, 8, 4, 7, 5, 6}) w.nodes_new.push_back(child(1, "split", item));
  for (const int item : {0, 1}) w.nodes_new.push_back(child(1, "split2", item));
  commit(w);
  EXPECT_EQ(reads->nodes(job_id(1), 100)->size(), 2u);
  const auto indexes = [&](const std::string& fan_out, std::int32_t after, std::size_t limit) {
    std::vector<std::int32_t> found;
    const auto rows = reads->items(job_id(1), fan_out, after, limit).value();
    for (const NodeState& row : rows) found.push_back(row.item_index);
    return found;
  };
  EXPECT_EQ(indexes("split", -1, 100), (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(indexes("split", -1, 2), (std::vector{0, 1}));
  EXPECT_EQ(indexes("split", 1, 2), (std::vector{2, 3}));
  EXPECT_EQ(indexes("split", 8, 100), (std::vector{9, 10}));
  EXPECT_EQ(indexes("split", 10, 2), std::vector<std::int32_t>{});
  EXPECT_EQ(indexes("split2", -1, 100), (std::vector{0, 1}));
  EXPECT_EQ(indexes("spli", -1, 100), std::vector<std::int32_t>{});
  EXPECT_TRUE(same(child(1, "split", 9), reads->items(job_id(1), "split", 8, 1)->at(0)));
}

TEST_P(ReadsContract, ANodeOrAChildIsFoundByItsName) {
  WriteSet w;
  w.nodes_new = {node(1, "split"), child(1, "split", 7), node(1, "step_3")};
  commit(w);
  EXPECT_TRUE(same(w.nodes_new[0], reads->node(job_id(1), "split").value().value()));
  EXPECT_TRUE(same(w.nodes_new[1], reads->node(job_id(1), "split_7").value().value()));
  EXPECT_TRUE(same(w.nodes_new[2], reads->node(job_id(1), "step_3").value().value()));  // named like a child
  for (const char* unknown : {"split_8", "split_07", "step", "_7", ""})
    EXPECT_FALSE(reads->node(job_id(1), unknown).value()) << unknown;
  EXPECT_FALSE(reads->node(job_id(2), "split").value());
}

TEST_P(ReadsContract, LogsComeByTheirNumberAndGoOnAfterOne) {
  WriteSet w;
  const auto line = [](const char* node_id, std::int64_t log_id) {
    return LogLine{
        job_id(1), node_id, log_id, 2, "stderr", at(log_id), "line " + std::to_string(log_id) + "\n'\"é"};
  };
  w.logs_new = {line("a", 30), line("a", 10), line("b", 20), line("a", 25)};
  commit(w);
  const auto all = reads->logs(job_id(1), "a", 0, 100).value();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(same(w.logs_new[1], all[0]));
  EXPECT_TRUE(same(w.logs_new[0], all[2]));
  const auto rest = reads->logs(job_id(1), "a", 10, 1).value();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].log_id, 25);
  EXPECT_TRUE(reads->logs(job_id(2), "a", 0, 100)->empty());
}

TEST_P(ReadsContract, DeadLettersComeOldestFirstInPagesWithoutGapsAndOnlyTheTenantsOwn) {
  WriteSet w;
  std::vector<NodeState> expected;
  for (int i = 0; i < 12; ++i) {
    NodeState row = i % 3 == 0 ? child(i % 4, "split", i) : node(i % 4, "n" + std::to_string(i));
    row.status = NodeStatus::failed;
    row.dead_at = at(1000 - i / 4 * 100);  // several at the same moment
    w.nodes_new.push_back(row);
    expected.push_back(row);
  }
  std::ranges::sort(expected, {}, [](const NodeState& n) {
    return std::tuple(n.dead_at, n.job_id, n.item_index, n.node_id);
  });
  NodeState foreign = node(1, "foreign");
  foreign.tenant = {"t2"};
  foreign.dead_at = at(5);
  w.nodes_new.push_back(foreign);
  w.nodes_new.push_back(node(1, "alive"));
  commit(w);
  for (const std::size_t page_size : {1u, 5u, 100u}) {
    std::vector<NodeState> seen;
    std::optional<NodeCursor> after;
    while (true) {
      const auto page = reads->dead_letters({"default"}, after, page_size).value();
      if (page.empty()) break;
      EXPECT_LE(page.size(), page_size);
      seen.insert(seen.end(), page.begin(), page.end());
      after =
          NodeCursor{*seen.back().dead_at, seen.back().job_id, seen.back().item_index, seen.back().node_id};
      ASSERT_LE(seen.size(), expected.size());
    }
    ASSERT_EQ(seen.size(), expected.size());
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(same(expected[i], seen[i])) << i;
  }
  EXPECT_EQ(reads->dead_letters({"t2"}, {}, 10)->size(), 1u);
  WriteSet revived;
  revived.nodes_changed = {expected[0]};
  revived.nodes_changed[0].dead_at.reset();
  commit(revived);
  EXPECT_EQ(reads->dead_letters({"default"}, {}, 100)->size(), 11u);
}

TEST_P(ReadsContract, ApprovalsAreWhatWaitsForAPersonByPriorityAndAge) {
  WriteSet w;
  const auto approval = [&](const char* name, std::int32_t priority, int dispatched) {
    NodeState row = node(1, name);
    row.queue = "approval";
    row.task_id.reset();  // a task of a queue that an earlier version did not forbid has one
    row.priority = priority;
    row.dispatched_at = at(dispatched);
    return row;
  };
  w.nodes_new = {approval("late", 0, 20), approval("early", 0, 10),  approval("urgent", 9, 30),
                 approval("done", 9, 1),  approval("foreign", 9, 1), node(1, "task")};
  w.nodes_new[3].status = NodeStatus::completed;
  w.nodes_new[4].tenant = {"t2"};
  commit(w);
  std::vector<std::string> names;
  const auto rows = reads->approvals({"default"}, 10).value();
  for (const NodeState& row : rows) names.push_back(row.node_id);
  EXPECT_EQ(names, (std::vector<std::string>{"urgent", "early", "late"}));
  EXPECT_EQ(reads->approvals({"default"}, 2)->size(), 2u);
}

TEST_P(ReadsContract, JobsAreFoundByTagTogetherWithEveryOtherFilter) {
  WriteSet w;
  for (int i = 0; i < 40; ++i) {
    const Job& row = w.jobs_new.emplace_back(mixed_job(i));
    if (i % 2 == 0) w.tags_new.push_back({row.tenant, "even", row.job_id});
    if (i % 4 == 0) w.tags_new.push_back({row.tenant, "four", row.job_id});
  }
  w.tags_new.push_back(
      {{"other"}, "four", job_id(1)});  // another tenant's word says nothing of this one's job
  commit(w);
  for (int mask = 0; mask < 4; ++mask) {
    JobFilter filter{.tenant = {"default"}, .tag = "four"};
    if (mask & 1) filter.status = JobStatus::failed;
    if (mask & 2) filter.workflow_id = "w1";
    std::vector<JobId> expected;
    for (int i = 39; i >= 0; --i) {
      const Job& row = w.jobs_new[static_cast<std::size_t>(i)];
      if (i % 4 == 0 && row.tenant.value == "default" && (!filter.status || row.status == *filter.status) &&
          (!filter.workflow_id || row.workflow_id == *filter.workflow_id))
        expected.push_back(row.job_id);
    }
    for (const std::size_t page_size : {1u, 3u, 1000u}) EXPECT_EQ(list(filter, page_size), expected) << mask;
  }
  EXPECT_TRUE(list({.tenant = {"default"}, .tag = "fou"}, 10).empty());
}

TEST_P(ReadsContract, TheTimelineGoesOnAfterAnEvent) {
  WriteSet w;
  w.events_new = {event(1, 30), event(1, 10), event(1, 20), event(2, 15)};
  w.events_new[0].node_id = std::nullopt;
  w.events_new[0].event_data = std::nullopt;
  commit(w);
  const auto all = reads->timeline(job_id(1), 0, 100).value();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(same(event(1, 10), all[0]));
  EXPECT_TRUE(same(w.events_new[0], all[2]));
  const auto rest = reads->timeline(job_id(1), 10, 1).value();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].event_id, 20);
}

TEST_P(ReadsContract, EveryFilterOfTheListGivesTheMatchingJobsNewestFirst) {
  WriteSet w;
  for (int i = 0; i < 60; ++i) w.jobs_new.push_back(mixed_job(i));
  commit(w);
  for (int mask = 0; mask < 16; ++mask) {
    JobFilter filter{.tenant = {"default"}};
    if (mask & 1) filter.status = JobStatus::failed;
    if (mask & 2) filter.workflow_id = "w1";
    if (mask & 4) filter.created_from = at(10);
    if (mask & 8) filter.created_until = at(41);
    std::vector<JobId> expected;
    for (const Job& row : w.jobs_new) {
      if (row.tenant.value == "default" && (!filter.status || row.status == *filter.status) &&
          (!filter.workflow_id || row.workflow_id == *filter.workflow_id) &&
          (!filter.created_from || row.created_at >= *filter.created_from) &&
          (!filter.created_until || row.created_at < *filter.created_until)) {
        expected.insert(expected.begin(), row.job_id);
      }
    }
    for (const std::size_t page_size : {1u, 4u, 1000u}) EXPECT_EQ(list(filter, page_size), expected) << mask;
  }
}

TEST_P(ReadsContract, AListLeavesDocumentsOut) {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.jobs_new[0].result_data = Json{"1"};
  commit(w);
  const auto page = reads->jobs({.tenant = {"default"}}, {}, 10);
  ASSERT_TRUE(page);
  Job expected = job(1);
  expected.input_data = {};
  EXPECT_TRUE(same(expected, page->jobs.at(0)));
  EXPECT_FALSE(page->next_before);
}

TEST_P(ReadsContract, PagesHaveNoGapsAndNoRepetitionsWhileJobsArriveAndChange) {
  WriteSet w;
  for (int i = 0; i < 50; ++i) w.jobs_new.push_back(job(i));
  commit(w);
  JobFilter filter{.tenant = {"default"}};
  std::vector<JobId> seen;
  std::optional<JobId> before;
  for (int page = 0; page == 0 || before; ++page) {
    const auto answer = reads->jobs(filter, before, 7);
    ASSERT_TRUE(answer);
    for (const Job& row : answer->jobs) seen.push_back(row.job_id);
    before = answer->next_before;
    WriteSet more;
    more.jobs_new = {job(100 + page)};
    more.jobs_changed = {job(49 - page * 7), job(page)};
    more.jobs_changed[0].status = more.jobs_changed[1].status = JobStatus::completed;
    if (page < 8) commit(more);
  }
  std::vector<JobId> expected;
  for (int i = 49; i >= 0; --i) expected.push_back(job_id(i));
  EXPECT_EQ(seen, expected);
}

TEST_P(ReadsContract, WorkflowsAreListedByIdWithTheirLatestVersion) {
  WriteSet w;
  const Tenant t{"default"};
  w.workflows_new = {{t, "b", 1, "b1", at(1)}, {t, "b", 10, "b10", at(10)}, {t, "b", 9, "b9", at(9)},
                     {t, "a", 1, "a1", at(2)}, {t, "c", 1, "c1", at(3)},    {{"other"}, "a", 5, "x", at(4)}};
  commit(w);
  const auto page = reads->workflows(t, "", 2).value();
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].workflow_id, "a");
  EXPECT_EQ(page[1].workflow_id, "b");
  EXPECT_EQ(page[1].version, 10);
  EXPECT_EQ(page[1].published_at, at(10));
  const auto rest = reads->workflows(t, "b", 2).value();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].workflow_id, "c");
  EXPECT_EQ(reads->workflow(t, "b", 0).value()->definition, "b10");
  EXPECT_TRUE(same(w.workflows_new[2], *reads->workflow(t, "b", 9).value()));
  EXPECT_FALSE(reads->workflow(t, "b", 2).value());
  EXPECT_FALSE(reads->workflow(t, "d", 0).value());
}

TEST_P(ReadsContract, TokensAreAddedFoundByHashAndRevokedOnce) {
  auto admin = database.token_admin().value();
  const Token operate{"t1", "aa", "it's \"mine\"", Role::operator_, Tenant{"acme"}, at(1), std::nullopt};
  const Token all{"t2", "bb", "", Role::admin, std::nullopt, at(2), std::nullopt};
  ASSERT_TRUE(admin->add(all));
  ASSERT_TRUE(admin->add(operate));
  EXPECT_EQ(admin->add(operate).error().code, Code::conflict);
  EXPECT_TRUE(same(operate, *reads->token_by_hash("aa").value()));
  EXPECT_TRUE(same(all, *reads->token_by_hash("bb").value()));
  EXPECT_FALSE(reads->token_by_hash("cc").value());
  EXPECT_EQ(admin->revoke("t1", at(5)).value(), true);
  EXPECT_EQ(admin->revoke("t1", at(6)).value(), false);
  EXPECT_EQ(admin->revoke("t9", at(6)).value(), false);
  const auto tokens = reads->tokens().value();
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].token_id, "t1");
  EXPECT_EQ(tokens[0].revoked_at, at(5));
  commit({});  // the writer's term was not touched
}

// What only a database has: a schema.
class SchemaContract : public ReadsContract {};
INSTANTIATE_TEST_SUITE_P(All, SchemaContract, ::testing::Values(StoreType::sqlite, StoreType::postgres), name_of);

TEST_P(SchemaContract, TokenAdministrationMigratesAFreshDatabaseAndReadersRefuseOne) {
  Database fresh(GetParam());
  const auto refused = store::make_reads(fresh.url());
  ASSERT_FALSE(refused);
  const auto admin = store::make_token_admin(fresh.url());
  ASSERT_TRUE(admin) << admin.error().message;
  EXPECT_TRUE((*admin)->add({"t", "hash", "", Role::viewer, {}, at(1), {}}));
  EXPECT_TRUE(store::make_reads(fresh.url()));
  EXPECT_TRUE(fresh.store()->open(partition));
}

TEST_P(SchemaContract, ANewerDatabaseIsRefusedByAll) {
  store.reset();
  database.execute(
      "INSERT INTO schema_migrations(version, applied_at) VALUES (9999, '2026-01-01T00:00:00.000Z')");
  const auto opened = database.store()->open(partition);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::invalid);
  EXPECT_TRUE(opened.error().message.contains("9999")) << opened.error().message;
  EXPECT_FALSE(store::make_reads(database.url()));
  EXPECT_FALSE(store::make_token_admin(database.url()));
}

}  // namespace
}  // namespace baton::contract::reads_contract_test
