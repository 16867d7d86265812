// Timers and results, and the nodes that they are of.
#include <limits>

#include "store/check/scan.hpp"
#include "store/check/tables_check.hpp"

namespace baton::store {
namespace {

using namespace workflow;

using NodesByName = std::map<NodeName, NodeState>;

// As they are after the journal, wherever they are stored. A name may be that of a child.
Result<NodesByName> find_nodes(Snapshot& snapshot, const Replayed& replayed, const NodeNames& names) {
  std::set<KeyOf<NodeState>> keys;
  for (const auto& [job_id, node_id] : names) {
    keys.insert({job_id, no_item, node_id});
    if (const auto item = parse_item_name(node_id)) keys.insert({job_id, item->item, node_id});
  }
  TRY_ASSIGN(auto rows, snapshot.nodes(keys));
  NodesByName found;
  for (const auto& key : keys) {
    const auto row = rows.find(key);
    const auto change = replayed.changes<NodeState>().find(key);
    const bool is_changed = change != replayed.changes<NodeState>().end();
    const NodeName name{std::get<JobId>(key), std::get<std::string>(key)};
    if (is_changed && change->second.is_new) {
      found.insert_or_assign(name, *change->second.row);
    } else if (row != rows.end()) {
      if (is_changed) copy_live(*change->second.row, row->second);
      found.insert_or_assign(name, std::move(row->second));
    }
  }
  std::set<JobId> others;
  for (const NodeName& name : names)
    if (!found.contains(name)) others.insert(name.first);
  TRY_ASSIGN(auto packed, snapshot.packed(others));
  for (PackedJob& job : packed)
    for (NodeState& node : job.nodes) {
      NodeName name{node.job_id, node.node_id};
      found.emplace(std::move(name), std::move(node));
    }
  return found;
}

class TimersCheck {
 public:
  TimersCheck(Snapshot& snapshot, const Replayed& replayed, const TellFinding& tell, Checked& checked, NodeNames& put_off)
      : snapshot_(snapshot), replayed_(replayed), tell_(tell), checked_(checked), put_off_(put_off) {}

  Result<> run() {
    std::size_t read = lookup_rows;
    while (read == lookup_rows) {
      std::vector<Timer> page;
      TRY_ASSIGN(read, read_page(page));
      TRY(look_at(page));
    }
    return look_at({replayed_.timers_new().begin(), replayed_.timers_new().end()});
  }

 private:
  // How many the tables have; of those that the journal has as well, it has the last word.
  Result<std::size_t> read_page(std::vector<Timer>& page) {
    std::size_t read = 0;
    const auto from = std::tuple(due_, subject_, what_);
    const auto take = [&](const RowView& row) -> Result<> {
      ++read;
      due_ = row.integer(0), subject_ = row.text(1), what_ = row.text(2);
      Timer timer = SqlTimers::read(row);
      if (!replayed_.timers_gone().contains(timer) && !replayed_.timers_new().contains(timer)) page.push_back(std::move(timer));
      return {};
    };
    const auto fill_key_and_limit = [&](std::size_t, std::span<Value> out) {
      fill_key(from, out);
      out[3] = number(lookup_rows);
    };
    const Query query{&snapshot_.timers.after, 1, fill_key_and_limit, take, {}};
    TRY(snapshot_.run({&query, 1}));
    return read;
  }

  // A timer whose node waits for none, or for a later one, is stray, which is no mistake: it goes when its time has come.
  Result<> look_at(const std::vector<Timer>& timers) {
    NodeNames names;
    for (const Timer& timer : timers)
      if (timer.subject.type == Subject::Type::job) names.insert({{timer.subject.id}, timer.what});
    checked_.timers += timers.size();
    TRY_ASSIGN(const auto nodes, find_nodes(snapshot_, replayed_, names));
    for (const Timer& timer : timers) {
      if (timer.subject.type != Subject::Type::job) continue;
      const auto node = nodes.find({{timer.subject.id}, timer.what});
      if (node == nodes.end())
        tell_("the timer that is due at " + to_iso(timer.due), no_node_text({timer.subject.id}, timer.what));
      else if (node->second.timer_due && *node->second.timer_due < timer.due)
        put_off_.insert(node->first);
    }
    return {};
  }

  Snapshot& snapshot_;
  const Replayed& replayed_;
  const TellFinding& tell_;
  Checked& checked_;
  NodeNames& put_off_;
  std::int64_t due_ = std::numeric_limits<std::int64_t>::min();  // the last that was read, as it is stored
  std::string subject_, what_;
};

}  // namespace

Result<> check_timers(Snapshot& snapshot, const Replayed& replayed, const TellFinding& tell, Checked& checked,
                      NodeNames& put_off) {
  return TimersCheck(snapshot, replayed, tell, checked, put_off).run();
}

Result<> check_results(Snapshot& snapshot, const Replayed& replayed, const TellFinding& tell, Checked& checked) {
  Scan<TaskResult> results(snapshot, replayed.changes<TaskResult>());
  std::vector<TaskResult> page;
  const auto look_at_page = [&]() -> Result<> {
    NodeNames names;
    for (const TaskResult& row : page) names.insert({row.job_id, row.node_id});
    TRY_ASSIGN(const auto nodes, find_nodes(snapshot, replayed, names));
    for (const TaskResult& row : page)
      if (!nodes.contains({row.job_id, row.node_id})) tell(result_text(row), no_node_text(row.job_id, row.node_id));
    checked.task_results += page.size();
    return page.clear(), Result<>{};
  };
  while (true) {
    TRY_ASSIGN(const auto* next, results.peek());
    if (!next) return look_at_page();
    page.push_back({.task_id = next->row.task_id, .job_id = next->row.job_id, .node_id = next->row.node_id});
    results.pop();
    if (page.size() == lookup_rows) TRY(look_at_page());
  }
}

}  // namespace baton::store
