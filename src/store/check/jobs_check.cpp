#include "store/check/tables_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "store/check/job_check.hpp"
#include "store/check/scan.hpp"

namespace baton::store {
namespace {

using namespace workflow;

struct ScannedPage {
  JobId job_id;
  std::int64_t last_event = 0;
  std::optional<std::vector<Event>> events;  // none: they cannot be read
  std::optional<PackedJob> packed;           // the same
};

// The pages of all jobs in the order of their keys.
class PageScan {
 public:
  explicit PageScan(Snapshot& snapshot) : snapshot_(snapshot) {}

  [[nodiscard]] Result<ScannedPage*> peek() {
    if (pages_.empty() && !is_at_end_) TRY(read_pages());
    return pages_.empty() ? nullptr : &pages_.front();
  }
  void pop() { pages_.pop_front(); }

 private:
  static constexpr std::size_t at_once = 100;

  Result<> read_pages() {
    const auto take = [&](const RowView& row) -> Result<> {
      ScannedPage page{SqlJobPages::job_of(row), SqlJobPages::last_event(row), std::vector<Event>{}, std::nullopt};
      if (!SqlJobPages::read_events(row, page.job_id, std::numeric_limits<std::int64_t>::min(), *page.events)) page.events.reset();
      if (auto packed = SqlJobPages::read_packed(row)) page.packed = *std::move(packed);
      if (page.packed) std::ranges::sort(page.packed->nodes, {}, [](const NodeState& node) { return owned_key(node); });
      return pages_.push_back(std::move(page)), Result<>{};
    };
    const Query query{&snapshot_.pages.pages_after, 1, constant({encode(job_id_), last_event_, number(at_once)}), take, {}};
    TRY(snapshot_.run({&query, 1}));
    is_at_end_ = pages_.size() < at_once;
    if (!pages_.empty()) job_id_ = pages_.back().job_id, last_event_ = pages_.back().last_event;
    return {};
  }

  Snapshot& snapshot_;
  JobId job_id_;
  std::int64_t last_event_ = 0;
  std::deque<ScannedPage> pages_;
  bool is_at_end_ = false;
};

class JobsCheck {
 public:
  JobsCheck(Snapshot& snapshot, const Replayed& replayed, const NodeNames& put_off, const TellFinding& tell, Checked& checked)
      : snapshot_(snapshot),
        replayed_(replayed),
        put_off_(put_off),
        tell_(tell),
        checked_(checked),
        jobs_(snapshot, replayed.changes<Job>()),
        nodes_(snapshot, replayed.changes<NodeState>()),
        event_rows_(snapshot, Scan<Event>::none(), "dag_job_event_rows"),
        pages_(snapshot),
        events_(replayed.events().begin()) {}

  Result<> run() {
    while (true) {
      TRY_ASSIGN(const auto id, next_job());
      if (!id) break;
      TRY(check_job(*id));
    }
    return look_up_nodes();
  }

 private:
  // The smallest id that any table goes on with.
  Result<std::optional<JobId>> next_job() {
    std::optional<JobId> first;
    const auto take = [&](const JobId& id) {
      if (!first || id < *first) first = id;
    };
    TRY_ASSIGN(const auto* job, jobs_.peek());
    TRY_ASSIGN(const auto* node, nodes_.peek());
    TRY_ASSIGN(const auto* event, event_rows_.peek());
    TRY_ASSIGN(const auto* page, pages_.peek());
    if (job) take(job->row.job_id);
    if (node) take(node->row.job_id);
    if (event) take(event->row.job_id);
    if (page) take(page->job_id);
    if (events_ != replayed_.events().end()) take(events_->first);
    return first;
  }

  Result<> check_job(const JobId& id) {
    TRY_ASSIGN(const auto* next, jobs_.peek());
    std::optional<Scanned<Job>> job;
    if (next && next->row.job_id == id) job = *next, jobs_.pop();
    if (!job) tell_(job_text(id), "it has nodes or events, but no row");
    if (job && !job->is_readable) tell_(job_text(id), "its row cannot be read by this version");
    const bool is_checked = job && job->is_readable;
    if (!is_checked) job = Scanned<Job>{Job{.job_id = id, .status = JobStatus::completed}, false};
    checked_.jobs += is_checked;
    TRY_ASSIGN(const auto definition, is_checked ? definition_of(job->row) : Result<std::shared_ptr<const Definition>>{});
    const TellFinding nobody = [](const auto&, const auto&) {};  // what its other rows say does not matter then
    JobCheck rows(job->row, definition, is_checked ? tell_ : nobody);
    EventCheck events(id, is_checked ? tell_ : nobody);
    TRY(check_event_rows(id, events));
    TRY(check_pages(job->row, rows, events));
    TRY(check_nodes(id, rows));
    check_new_events(id, events);
    events.finish();
    rows.finish();
    return {};
  }

  Result<> check_event_rows(const JobId& id, EventCheck& events) {
    while (true) {
      TRY_ASSIGN(const auto* event, event_rows_.peek());
      if (!event || event->row.job_id != id) return {};
      ++checked_.events;
      if (!event->is_readable) tell_(job_text(id), fmt::format("its event {} cannot be read by this version", event->row.event_id));
      event->is_readable ? events.add(event->row) : events.skip();
      event_rows_.pop();
    }
  }

  Result<> check_pages(const Job& job, JobCheck& rows, EventCheck& events) {
    while (true) {
      TRY_ASSIGN(ScannedPage* const page, pages_.peek());
      if (!page || page->job_id != job.job_id) return {};
      check_page(job, *page, rows, events);
      pages_.pop();
    }
  }

  void check_page(const Job& job, const ScannedPage& page, JobCheck& rows, EventCheck& events) {
    const std::string subject = fmt::format("page {} of job {}", page.last_event, job.job_id.value);
    if (!page.events) tell_(subject, "its events cannot be read"), events.skip();
    if (!page.packed) tell_(subject, "its nodes and results cannot be read"), rows.skip();
    if (page.events) {
      checked_.events += page.events->size();
      for (const Event& event : *page.events) events.add(event);
      if (page.events->empty() || page.events->back().event_id != page.last_event)
        tell_(subject, "its last event is another one than its row says");
    }
    if (page.packed) check_packed(job, *page.packed, rows);
  }

  void check_packed(const Job& job, const PackedJob& packed, JobCheck& rows) {
    if (packed.nodes.empty()) return;
    if (job.status != JobStatus::completed)
      tell_(job_text(job.job_id), fmt::format("it is {}, and has nodes in a page", name(job.status)));
    checked_.nodes += packed.nodes.size();
    checked_.task_results += packed.results.size();
    std::set<std::string> nodes, results;
    for (const NodeState& node : packed.nodes) nodes.insert(node.node_id);
    for (const TaskResult& result : packed.results) {
      results.insert(result.task_id);
      if (!nodes.contains(result.node_id)) tell_(result_text(result), no_node_text(result.job_id, result.node_id));
    }
    for (const NodeState& node : packed.nodes)
      if (needs_result(node, rows.add(node)) && !results.contains(*node.task_id)) tell_node_without_result(node);
  }

  Result<> check_nodes(const JobId& id, JobCheck& rows) {
    while (true) {
      TRY_ASSIGN(const auto* node, nodes_.peek());
      if (!node || node->row.job_id != id) return {};
      ++checked_.nodes;
      if (node->is_readable) {
        const bool is_task = rows.add(node->row);
        if (node->row.timer_due || needs_result(node->row, is_task)) {
          looked_up_.push_back({node->row, is_task});
          looked_up_.back().node.error.reset();
        }
      } else {
        tell_(node_text(id, node->row.node_id), "its row cannot be read by this version");
        rows.skip();
      }
      nodes_.pop();
      if (looked_up_.size() >= lookup_rows) TRY(look_up_nodes());
    }
  }

  void check_new_events(const JobId& id, EventCheck& events) {
    if (events_ == replayed_.events().end() || events_->first != id) return;
    for (const Event* event : events_->second) events.add(*event);
    checked_.events += events_->second.size();
    ++events_;
  }

  // --- what nodes need: their timers, and the results of tasks that have completed

  Result<> look_up_nodes() {
    std::vector<Timer> timers, found;
    std::set<KeyOf<TaskResult>> tasks;
    for (const auto& [node, is_task] : looked_up_) {
      if (node.timer_due) timers.push_back(timer_of(node));
      if (needs_result(node, is_task)) tasks.insert({*node.task_id});
    }
    if (!timers.empty()) {
      const Query query = snapshot_.timers.find(timers, found);
      TRY(snapshot_.run({&query, 1}));
    }
    TRY_ASSIGN(const auto stored, snapshot_.stored<TaskResult>(tasks));
    const std::set<Timer> waiting(found.begin(), found.end());
    for (const auto& [node, is_task] : looked_up_) {
      if (node.timer_due && !is_waiting(timer_of(node), waiting) && !put_off_.contains({node.job_id, node.node_id}))
        tell_(node_text(node.job_id, node.node_id), "its timer, due at " + to_iso(*node.timer_due) + ", is missing");
      if (needs_result(node, is_task) && !stored.contains({*node.task_id}) && !replayed_.changes<TaskResult>().contains({*node.task_id}))
        tell_node_without_result(node);
    }
    looked_up_.clear();
    return {};
  }

  [[nodiscard]] bool is_waiting(const Timer& timer, const std::set<Timer>& stored) const {
    return replayed_.timers_new().contains(timer) || (stored.contains(timer) && !replayed_.timers_gone().contains(timer));
  }

  static Timer timer_of(const NodeState& node) { return {*node.timer_due, subject_of(node.job_id), node.node_id}; }

  static bool needs_result(const NodeState& node, bool is_task) {
    return is_task && node.status == NodeStatus::completed && node.task_id;
  }
  void tell_node_without_result(const NodeState& node) const {
    tell_(node_text(node.job_id, node.node_id), "it is completed, and the result of task " + *node.task_id + " is missing");
  }

  // A definition is parsed once, whatever many jobs have it.
  Result<std::shared_ptr<const Definition>> definition_of(const Job& job) {
    constexpr std::size_t kept_max = 1'000;
    const WorkflowKey key{job.tenant, job.workflow_id, job.workflow_version};
    auto known = definitions_.find(key);
    if (known == definitions_.end()) {
      if (definitions_.size() >= kept_max) definitions_.clear();
      TRY_ASSIGN(const auto row, snapshot_.workflow(key));
      known = definitions_.emplace(key, row ? parse(row->definition, Strictness::stored).definition : nullptr).first;
    }
    if (!known->second)
      tell_(job_text(job.job_id), fmt::format("version {} of its workflow {} is missing or cannot be read", key.version, key.workflow_id));
    return known->second;
  }

  // A node whose timer or result is looked up, with those of others.
  struct LookedUp {
    NodeState node;
    bool is_task = false;
  };

  Snapshot& snapshot_;
  const Replayed& replayed_;
  const NodeNames& put_off_;
  const TellFinding& tell_;
  Checked& checked_;
  Scan<Job> jobs_;
  Scan<NodeState> nodes_;
  Scan<Event> event_rows_;
  PageScan pages_;
  std::map<JobId, std::vector<const Event*>>::const_iterator events_;  // of the journal
  std::vector<LookedUp> looked_up_;
  std::map<WorkflowKey, std::shared_ptr<const Definition>> definitions_;
};

}  // namespace

Result<> check_jobs(Snapshot& snapshot, const Replayed& replayed, const NodeNames& put_off, const TellFinding& tell,
                    Checked& checked) {
  return JobsCheck(snapshot, replayed, put_off, tell, checked).run();
}

}  // namespace baton::store
