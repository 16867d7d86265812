#include "store/sql_job_pages.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/json_document.hpp"
#include "base/json_write.hpp"
#include "core/workflow/machine/machine.hpp"
#include "store/statements.hpp"

namespace baton::store {
namespace {

using namespace workflow;

// So that a reader who wants a few need not read thousands, nor megabytes.
constexpr std::size_t page_events_max = 256, page_bytes_max = 64 << 10;
// Of what a job that has completed keeps in its page: whoever reads one node reads all.
constexpr std::size_t packed_nodes_max = 64, packed_bytes_max = 16 << 10;

struct Page {
  std::string_view job_id;
  std::int64_t last = 0;   // event
  std::int64_t since = 0;  // the time of the first one
  std::vector<const Event*> list;
  std::size_t bytes = 0;  // about
  std::string events, nodes, results;
};

// Data that is nested as deep as we accept is too deep within a page, and PostgreSQL cannot look into a page that has
// a NUL (backslash u0000) anywhere. Such data is a text in the page.
bool fits_a_page(std::string_view data) {
  constexpr int depth_max = 60;
  int depth = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] == '[' || data[i] == '{') ++depth;  // in a text too: rarely, and then it is only a text
    if (data[i] == ']' || data[i] == '}') --depth;
    if (depth > depth_max) return false;
    if (data[i] == '\\' && data.substr(++i).starts_with("u0000")) return false;
  }
  return true;
}

bool is_full(const Page& page) { return page.list.size() == page_events_max || page.bytes >= page_bytes_max; }

void add(Page& page, const Event& event) {
  if (page.list.empty()) page.since = to_millis(event.created_at);
  page.last = event.event_id;
  page.bytes += 40 + (event.event_data ? event.event_data->text.size() : 0);
  page.list.push_back(&event);
}

void append(std::string& out, const Page& page, const Event& event) {
  out += out.empty() ? "[[" : ",[";
  append_value(out, page.last - event.event_id);
  out += ',';
  append_value(out, name(event.event_type));
  out += ',';
  append_value(out, event.node_id);
  out += ',';
  append_value(out, to_millis(event.created_at) - page.since);
  if (event.event_data) {
    out += ',';
    const std::string& data = event.event_data->text;
    fits_a_page(data) ? void(out += data) : append_quoted(out, data);
  }
  out += ']';
}

std::vector<Page> pages_of(const std::vector<Event>& events) {
  std::vector<const Event*> order;
  for (const Event& event : events) order.push_back(&event);
  std::ranges::stable_sort(order, {}, [](const Event* event) { return event->event_id; });  // which they mostly are
  std::vector<Page> pages;
  std::unordered_map<std::string_view, std::size_t> open;  // of each job the page that is not full
  for (const Event* event : order) {
    const auto [place, is_new] = open.try_emplace(event->job_id.value, pages.size());
    if (!is_new && is_full(pages[place->second])) place->second = pages.size();
    if (place->second == pages.size()) pages.push_back({.job_id = event->job_id.value});
    add(pages[place->second], *event);
  }
  for (Page& page : pages) {
    for (const Event* event : page.list) append(page.events, page, *event);
    page.events += ']';
  }
  std::ranges::sort(pages, {}, [](const Page& page) { return std::pair(page.job_id, page.last); });
  return pages;
}

// --- what a job that has completed leaves

struct Packed {
  std::vector<const NodeState*> nodes;
  std::vector<const TaskResult*> results;
  std::size_t bytes = 0;
  bool fits = true;
};
using PackedJobs = std::unordered_map<std::string_view, Packed>;

// Nothing comes of it any more.
bool is_settled(const NodeState& node) {
  return is_terminal(node.status) && !node.dead_at && !node.timer_due && !node.sweep_next;
}

std::size_t size_of(const OptionalJson& document) { return document ? document->text.size() : 0; }

void add(PackedJobs& jobs, const NodeState& node) {
  const auto job = jobs.find(node.job_id.value);
  if (job == jobs.end()) return;
  Packed& packed = job->second;
  packed.nodes.push_back(&node);
  packed.bytes += size_of(node.params) + size_of(node.output) + size_of(node.progress) + size_of(node.checkpoint) +
                  node.error.value_or("").size();
  packed.fits = packed.fits && is_settled(node);
}

void add(PackedJobs& jobs, const TaskResult& result) {
  const auto job = jobs.find(result.job_id.value);
  if (job == jobs.end()) return;
  job->second.results.push_back(&result);
  job->second.bytes += size_of(result.output) + result.error.value_or("").size();
}

// Those that began and completed in these writes.
PackedJobs packed_jobs(const WriteSet& writes) {
  PackedJobs jobs;
  for (const Job& job : writes.jobs_new)
    if (job.status == JobStatus::completed) jobs.try_emplace(job.job_id.value);
  if (jobs.empty()) return jobs;
  for (const NodeState& node : writes.nodes_new) add(jobs, node);
  for (const TaskResult& result : writes.task_results_new) add(jobs, result);
  std::erase_if(jobs, [](const auto& job) {
    const Packed& packed = job.second;
    return !packed.fits || packed.nodes.empty() || packed.nodes.size() > packed_nodes_max || packed.bytes > packed_bytes_max;
  });
  return jobs;
}

template <class T>
void append_cell(std::string& out, const T& value, const Page& page, bool is_task_id) {
  if constexpr (is_optional<T>::value) {
    value ? append_cell(out, *value, page, is_task_id) : void(out += "null");
  } else if constexpr (std::is_same_v<T, Time>) {
    append_value(out, to_millis(value) - page.since);
  } else if constexpr (std::is_same_v<T, Json>) {
    append_quoted(out, value.text);
  } else if constexpr (std::is_same_v<T, bool>) {
    out += value ? '1' : '0';
  } else if constexpr (is_id<T>::value) {
    append_quoted(out, value.value);
  } else if constexpr (std::is_enum_v<T>) {
    append_quoted(out, name(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    append_quoted(out, is_task_id ? std::string_view(value).substr(page.job_id.size() + 1) : std::string_view(value));
  } else {
    append_value(out, value);
  }
}

// Without the nulls at its end.
template <class Row>
void append_row(std::string& out, const Row& row, const Page& page) {
  out += '[';
  std::size_t end = out.size();
  for_each_column<Row>([&](const auto& column) {
    if (column.name == "job_id") return;
    append_cell(out, row.*column.member, page, column.name == "task_id");
    if (!out.ends_with("null")) end = out.size();
    out += ',';
  });
  out.resize(end);
  out += ']';
}

template <class Row>
std::string rows_text(const std::vector<const Row*>& rows, const Page& page) {
  std::string out;
  append_list(out, rows, [&](std::string& to, const Row* row) { append_row(to, *row, page); });
  return out;
}

bool names_its_job(const std::string& task_id, std::string_view job_id) {
  return task_id.starts_with(job_id) && std::string_view(task_id).substr(job_id.size()).starts_with('_');
}

// A job whose events are not one page stays in rows.
void pack(std::vector<Page>& pages, PackedJobs& jobs) {
  std::unordered_map<std::string_view, std::size_t> counts;
  for (const Page& page : pages) ++counts[page.job_id];
  std::erase_if(jobs, [&](const auto& job) {
    const auto& [id, packed] = job;
    return counts[id] != 1 ||
           !std::ranges::all_of(packed.nodes, [&](const auto* node) { return !node->task_id || names_its_job(*node->task_id, id); }) ||
           !std::ranges::all_of(packed.results, [&](const auto* result) { return names_its_job(result->task_id, id); });
  });
  for (Page& page : pages) {
    const auto job = jobs.find(page.job_id);
    if (job == jobs.end()) continue;
    page.nodes = rows_text(job->second.nodes, page);
    page.results = rows_text(job->second.results, page);
  }
}

// The rows of all others.
template <class Row>
void add_rows(std::vector<Query>& queries, const Statement& statement, const std::vector<Row>& rows, const PackedJobs& packed) {
  if (packed.empty()) return add_write(queries, statement, rows, Columns::all);
  std::vector<const Row*> others;
  for (const Row& row : rows)
    if (!packed.contains(row.job_id.value)) others.push_back(&row);
  if (others.empty()) return;
  std::ranges::sort(others, [](const Row* a, const Row* b) { return key_of(*a) < key_of(*b); });
  const std::size_t count = others.size();
  const auto fill_row = [others = std::move(others)](std::size_t set, std::span<Value> out) {
    fill(*others[set], Columns::all, out);
  };
  queries.push_back({&statement, count, fill_row, {}, {}});
}

// A job that is packed is so in its first page, so that a job with many is not looked through.
Statement packed_statement(Dialect dialect) {
  if (dialect == Dialect::sqlite)
    return {"SELECT job_id FROM (SELECT job_id,nodes FROM dag_job_pages WHERE job_id=?1 ORDER BY last_event_id LIMIT 1)"
            " WHERE nodes IS NOT NULL",
            {Type::text},
            true};
  return {"SELECT k.job_id FROM unnest(?1) AS k(job_id) CROSS JOIN LATERAL (SELECT p.nodes FROM dag_job_pages AS p"
          " WHERE p.job_id=k.job_id ORDER BY p.last_event_id LIMIT 1) AS first WHERE first.nodes IS NOT NULL",
          {Type::text},
          true};
}

}  // namespace

SqlJobPages::SqlJobPages(Dialect dialect)
    : insert{std::string("INSERT INTO dag_job_pages(job_id,last_event_id,since,events,nodes,results) ") +
                 (dialect == Dialect::sqlite ? "VALUES(?1,?2,?3,?4,?5,?6)" : "SELECT * FROM unnest(?1,?2,?3,?4,?5,?6)"),
             {Type::text, Type::integer, Type::integer, Type::text, Type::text, Type::text},
             true},
      node_insert(insert_statement<NodeState>(dialect)),
      result_insert(insert_statement<TaskResult>(dialect)),
      pages{"SELECT events,last_event_id,since FROM dag_job_pages WHERE job_id=?1 AND last_event_id>?2 ORDER BY last_event_id LIMIT ?3",
            {Type::text, Type::integer, Type::integer}},
      pages_after{"SELECT events,last_event_id,since,job_id,nodes,results FROM dag_job_pages"
                  " WHERE (job_id,last_event_id)>(?1,?2) ORDER BY job_id,last_event_id LIMIT ?3",
                  {Type::text, Type::integer, Type::integer}},
      event_rows{"SELECT " + names<Event>(Columns::all) +
                     " FROM dag_job_event_rows WHERE job_id=?1 AND event_id>?2 ORDER BY event_id LIMIT ?3",
                 {Type::text, Type::integer, Type::integer}},
      is_packed(packed_statement(dialect)),
      nodes_of_job{"SELECT " + names<NodeState>(Columns::all) + " FROM dag_node_states WHERE job_id=?1", {Type::text}},
      results_of_job{"SELECT " + names<TaskResult>(Columns::all) + " FROM dag_task_results WHERE job_id=?1", {Type::text}} {}

void SqlJobPages::add_writes(std::vector<Query>& queries, const WriteSet& writes) const {
  std::vector<Page> made = pages_of(writes.events_new);
  PackedJobs packed = packed_jobs(writes);
  pack(made, packed);
  add_rows(queries, node_insert, writes.nodes_new, packed);
  add_rows(queries, result_insert, writes.task_results_new, packed);
  if (made.empty()) return;
  auto all = std::make_shared<const std::vector<Page>>(std::move(made));
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Value{} : Value{std::string_view(text)}; };
  const auto fill_page = [all, text_or_null](std::size_t set, std::span<Value> to) {
    const Page& page = (*all)[set];
    to[0] = page.job_id, to[1] = page.last, to[2] = page.since, to[3] = std::string_view(page.events);
    to[4] = text_or_null(page.nodes), to[5] = text_or_null(page.results);
  };
  queries.push_back({&insert, all->size(), fill_page, {}, {}});
}

namespace {

using NodeText = std::tuple<std::string_view, std::int32_t, std::string_view>;
NodeText text_key(const NodeKey& key) { return {key.job_id.value, key.item_index, key.node_id}; }
NodeText text_key(const NodeState& node) { return {node.job_id.value, node.item_index, node.node_id}; }

// What was asked for and not found, of jobs that may be packed.
struct NotFound {
  NotFound(const LoadRequest& request, const Loaded& loaded) {
    for (const NodeKey& key : request.nodes) nodes.insert(text_key(key));
    for (const NodeState& node : loaded.nodes) nodes.erase(text_key(node));
    results.insert(request.task_results.begin(), request.task_results.end());
    for (const TaskResult& result : loaded.task_results) results.erase(result.task_id);
    for (const NodeText& key : nodes) jobs.insert(std::get<0>(key));
    for (const std::string_view task_id : results)
      if (const auto name = parse_task_id(task_id)) jobs.insert(name->job_id);
    for (const Job& job : loaded.jobs)
      if (job.status != JobStatus::completed) jobs.erase(job.job_id.value);
  }
  std::set<NodeText> nodes;
  std::set<std::string_view> results, jobs;
};

}  // namespace

Result<> SqlJobPages::load_packed(const LoadRequest& request, Loaded& loaded, const Run& run) const {
  const NotFound missing(request, loaded);
  if (missing.jobs.empty()) return {};
  const std::vector<std::string_view> asked(missing.jobs.begin(), missing.jobs.end());
  std::vector<std::string> packed;
  const Query which{&is_packed, asked.size(), [&](std::size_t i, std::span<Value> to) { to[0] = asked[i]; },
                    [&](const RowView& row) -> Result<> { return packed.emplace_back(row.text(0)), Result<>{}; }, {}};
  TRY(run({&which, 1}));
  for (const std::string& job_id : packed) {
    std::vector<NodeState> nodes;
    std::vector<TaskResult> results;
    const Query queries[] = {{&nodes_of_job, 1, constant({std::string_view(job_id)}), collect(nodes), {}},
                             {&results_of_job, 1, constant({std::string_view(job_id)}), collect(results), {}}};
    TRY(run(queries));
    for (NodeState& node : nodes)
      if (missing.nodes.contains(text_key(node))) loaded.nodes.push_back(std::move(node));
    for (TaskResult& result : results)
      if (missing.results.contains(result.task_id)) loaded.task_results.push_back(std::move(result));
  }
  return {};
}

namespace {

std::unexpected<Error> unreadable() {
  return fail(Code::invalid, "table dag_job_pages holds a row that this version cannot read");
}

// What did not fit a page as it was is a text in it.
Json data_of(const JsonView& data) {
  const std::string_view text = data.kind() == JsonKind::string ? data.string() : std::string_view{};
  return text.starts_with('{') || text.starts_with('[') ? Json{std::string(text)} : data.json();
}

// As append_cell wrote it; false: it did not. Nulls at the end of a row were left out.
template <class T>
bool read_cell(const JsonView& cell, const std::string& job_id, std::int64_t since, bool is_task_id, T& to) {
  const JsonKind kind = cell ? cell.kind() : JsonKind::null;
  if constexpr (is_optional<T>::value) {
    return kind == JsonKind::null || read_cell(cell, job_id, since, is_task_id, to.emplace());
  } else if constexpr (std::is_same_v<T, Time>) {
    // Whatever the cell says, nothing overflows.
    const std::uint64_t millis = static_cast<std::uint64_t>(since) + static_cast<std::uint64_t>(kind == JsonKind::integer ? cell.integer() : 0);
    return kind == JsonKind::integer && (to = from_millis(static_cast<std::int64_t>(millis)), true);
  } else if constexpr (std::is_same_v<T, Json>) {
    return kind == JsonKind::string && (to.text = cell.string(), true);
  } else if constexpr (is_id<T>::value) {
    return kind == JsonKind::string && (to.value = cell.string(), true);
  } else if constexpr (std::is_enum_v<T>) {
    const auto word = kind == JsonKind::string ? store::parse(cell.string(), T{}) : std::nullopt;
    return word && (to = *word, true);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return kind == JsonKind::string && (to = (is_task_id ? job_id + "_" : "") + std::string(cell.string()), true);
  } else {
    return kind == JsonKind::integer && (to = static_cast<T>(cell.integer()), true);
  }
}

template <class Row>
Result<std::vector<Row>> read_rows(std::string_view text, const JobId& job_id, std::int64_t since) {
  std::vector<Row> rows;
  const auto document = JsonDocument::parse(text);
  if (!document || document->root().kind() != JsonKind::array) return unreadable();
  for (const JsonView& item : document->root().items()) {
    if (item.kind() != JsonKind::array) return unreadable();
    const std::vector<JsonView> cells = item.items();
    Row& row = rows.emplace_back();
    std::size_t at = 0;
    bool ok = true;
    for_each_column<Row>([&](const auto& column) {
      if (column.name == "job_id") return;
      const JsonView cell = at < cells.size() ? cells[at] : JsonView{};
      ok = ok && read_cell(cell, job_id.value, since, column.name == "task_id", row.*column.member);
      ++at;
    });
    if (!ok || at < cells.size()) return unreadable();
    row.job_id = job_id;
  }
  return rows;
}

}  // namespace

Result<PackedJob> SqlJobPages::read_packed(const RowView& row) {
  PackedJob packed;
  if (row.is_null(4) && row.is_null(5)) return packed;
  if (row.is_null(2) || row.is_null(4) || row.is_null(5)) return unreadable();
  TRY_ASSIGN(packed.nodes, read_rows<NodeState>(row.text(4), job_of(row), row.integer(2)));
  TRY_ASSIGN(packed.results, read_rows<TaskResult>(row.text(5), job_of(row), row.integer(2)));
  return packed;
}

Result<> SqlJobPages::read_events(const RowView& row, const JobId& job_id, std::int64_t after, std::vector<Event>& out) {
  const auto document = JsonDocument::parse(row.text(0));
  if (!document || document->root().kind() != JsonKind::array) return unreadable();
  const bool is_absolute = row.is_null(2);
  for (const JsonView& item : document->root().items()) {
    if (item.kind() != JsonKind::array) return unreadable();
    const auto fields = item.items();
    if (fields.size() < 4 || fields[0].kind() != JsonKind::integer || fields[1].kind() != JsonKind::string ||
        fields[3].kind() != (is_absolute ? JsonKind::string : JsonKind::integer))
      return unreadable();
    const std::int64_t id = is_absolute ? fields[0].integer() : row.integer(1) - fields[0].integer();
    if (id <= after) continue;
    const auto type = event_type(fields[1].string());
    const auto created_at =
        is_absolute ? from_iso_or_utc(fields[3].string()) : from_millis(row.integer(2) + fields[3].integer());
    if (!type || !created_at) return unreadable();
    Event event{.job_id = job_id, .event_id = id, .event_type = *type, .created_at = *created_at};
    if (fields[2].kind() == JsonKind::string) event.node_id = std::string(fields[2].string());
    if (fields.size() > 4) event.event_data = data_of(fields[4]);
    out.push_back(std::move(event));
  }
  return {};
}

}  // namespace baton::store
