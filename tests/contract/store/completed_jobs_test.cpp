// A job that has completed keeps its nodes and results in one row, and everybody sees rows.
#include "core/workflow/machine/machine.hpp"
#include "tests/contract/store/fixture.hpp"

namespace baton::contract::completed_jobs_test {
namespace {

using namespace workflow;

class CompletedJobs : public StoreContract {
 protected:
  static NodeState ended(int n, NodeState row) {
    row.job_id = job_id(n);
    row.status = NodeStatus::completed;
    row.task_id = task_id(row.job_id, row.node_id, row.retry_count);
    row.timer_due.reset();
    row.sweep_next.reset();
    row.dead_at.reset();
    row.dispatched_at = at(-1'500);  // before the first event: the clock was set back
    row.started_at = at(20);
    row.completed_at = at(1'234'567);
    row.lease_until = at(30'000);
    return row;
  }
  // A job with a fan-out of two, a result and events, as it is when it has completed.
  static WriteSet whole(int n) {
    WriteSet w;
    w.jobs_new = {job(n)};
    w.jobs_new[0].status = JobStatus::completed;
    w.nodes_new = {ended(n, node(n, "a")), ended(n, node(n, "split")), ended(n, child(n, "split", 0)),
                   ended(n, child(n, "split", 1))};
    w.nodes_new[0].output = Json{R"({"x":[1.50,{"y":"A \"B\" né"}],"z":null,"nul":"\u0000"})"};
    w.nodes_new[0].error = "a \"quoted\" é\nline";
    w.nodes_new[1].status = NodeStatus::skipped;
    w.nodes_new[1].task_id.reset();
    w.nodes_new[1].dispatched_at.reset();
    w.nodes_new[3].output.reset();
    w.nodes_new[3].params.reset();
    w.task_results_new = {task_result(n)};
    w.task_results_new[0].job_id = job_id(n);
    w.task_results_new[0].node_id = "a";
    w.task_results_new[0].task_id = task_id(job_id(n), "a", 0);
    w.task_results_new[0].output = w.nodes_new[0].output;
    w.task_results_new[0].received_at = at(1'234'567);
    w.events_new = {event(n, 10 * n), event(n, 10 * n + 1)};
    return w;
  }
  // It begins, and the tables show it: it is in rows for good.
  void complete_in_rows(const WriteSet& end) {
    WriteSet begin = end;
    begin.jobs_new[0].status = JobStatus::running;
    commit(begin);
    ASSERT_TRUE(store->follow());
    WriteSet then;
    then.jobs_changed = end.jobs_new;
    commit(then);
    ASSERT_TRUE(store->follow());
  }
  void complete_at_once(const WriteSet& end) {
    commit(end);
    ASSERT_TRUE(store->follow());
  }
  void expect_read(const WriteSet& expected) {
    LoadRequest request;
    for (const NodeState& row : expected.nodes_new) request.nodes.push_back(key_of(row));
    request.nodes.push_back({expected.jobs_new[0].job_id, no_item, "none"});
    for (const TaskResult& row : expected.task_results_new) request.task_results.push_back(row.task_id);
    request.task_results.push_back(task_id(expected.jobs_new[0].job_id, "none", 0));
    Loaded loaded = load(request);
    std::ranges::sort(loaded.nodes, {}, [](const NodeState& row) { return key_of(row); });
    ASSERT_EQ(loaded.nodes.size(), expected.nodes_new.size());
    for (std::size_t i = 0; i < loaded.nodes.size(); ++i) EXPECT_TRUE(same(expected.nodes_new[i], loaded.nodes[i])) << i;
    ASSERT_EQ(loaded.task_results.size(), 1u);
    EXPECT_TRUE(same(expected.task_results_new[0], loaded.task_results[0]));

    const auto reads = database.reads().value();
    const JobId& id = expected.jobs_new[0].job_id;
    const auto nodes = reads->nodes(id, 10).value();
    ASSERT_EQ(nodes.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(same(expected.nodes_new[i], nodes[i]));
    const auto items = reads->items(id, "split", no_item, 10).value();
    ASSERT_EQ(items.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(same(expected.nodes_new[i + 2], items[i]));
    EXPECT_EQ(reads->items(id, "split", 0, 10).value().size(), 1u);
    EXPECT_TRUE(same(expected.nodes_new[0], reads->node(id, "a").value().value()));
    EXPECT_TRUE(same(expected.nodes_new[3], reads->node(id, "split_1").value().value()));
    EXPECT_FALSE(reads->node(id, "split_2").value());
    EXPECT_EQ(reads->timeline(id, 0, 10).value().size(), 2u);
  }
};

class CompletedJobsOnAll : public CompletedJobs {};
INSTANTIATE_TEST_SUITE_P(All, CompletedJobsOnAll, every_store(), name_of);

TEST_P(CompletedJobsOnAll, AreReadAsTheyWereWritten) {
  complete_at_once(whole(1));
  complete_in_rows(whole(2));
  expect_read(whole(1));
  expect_read(whole(2));
}

class CompletedJobsBySql : public CompletedJobs {};
INSTANTIATE_TEST_SUITE_P(All, CompletedJobsBySql, ::testing::Values(StoreType::sqlite_journal, StoreType::postgres_journal), name_of);

TEST_P(CompletedJobsBySql, LookTheSameWhereverTheirRowsAre) {
  complete_at_once(whole(1));
  complete_in_rows(whole(2));
  EXPECT_EQ(database.ask("SELECT CAST(count(*) AS text) FROM dag_node_rows"), std::vector<std::string>{"4"});
  EXPECT_EQ(database.ask("SELECT CAST(count(*) AS text) FROM dag_task_result_rows"), std::vector<std::string>{"1"});
  const auto compare = [&](const std::string& view, std::string_view column, const std::string& order) {
    const auto of = [&](int n) {
      auto found = database.ask("SELECT CAST(" + std::string(column) + " AS text) FROM " + view + " WHERE job_id='" + job_id(n).value +
                       "' ORDER BY " + order);
      for (std::string& each : found)
        if (const auto id = each.find(job_id(n).value); id != each.npos) each.erase(id, job_id(n).value.size());
      return found;
    };
    EXPECT_EQ(of(1), of(2)) << view << "." << column;
    EXPECT_FALSE(of(1).empty());
  };
  store::for_each_column<NodeState>([&](const auto& column) { compare("dag_node_states", column.name, "item_index,node_id"); });
  store::for_each_column<TaskResult>([&](const auto& column) { compare("dag_task_results", column.name, "task_id"); });
}

TEST_P(CompletedJobsBySql, StayInRowsWhereTheyMayChangeOrAreLarge) {
  const auto packed = [&] { return database.ask("SELECT CAST(count(*) AS text) FROM dag_job_pages WHERE nodes IS NOT NULL").at(0); };
  WriteSet dead = whole(1), large = whole(2), failed = whole(3), long_ago = whole(4), swept = whole(6);
  dead.nodes_new[0].dead_at = at(5);
  swept.nodes_new[1].sweep_next = 1;
  large.nodes_new[0].output = Json{"\"" + std::string(100'000, 'x') + "\""};
  failed.jobs_new[0].status = JobStatus::failed;
  for (std::int64_t id = 1'000; id < 2'000; ++id) long_ago.events_new.push_back(event(4, id));
  for (const WriteSet& each : {dead, large, failed, long_ago, swept}) complete_at_once(each);
  EXPECT_EQ(packed(), "0");
  EXPECT_EQ(database.ask("SELECT CAST(count(*) AS text) FROM dag_node_states"), std::vector<std::string>{"20"});
  complete_at_once(whole(5));
  EXPECT_EQ(packed(), "1");
}

}  // namespace
}  // namespace baton::contract::completed_jobs_test
