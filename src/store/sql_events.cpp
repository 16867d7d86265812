#include "store/sql_events.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/json_document.hpp"
#include "base/json_write.hpp"
#include "store/statements.hpp"

namespace baton::store {
namespace {

using namespace workflow;

// So that a reader who wants a few need not read thousands, nor megabytes.
constexpr std::size_t page_events_max = 256, page_bytes_max = 64 << 10;

struct Page {
  std::string_view job_id;
  std::int64_t last = 0;   // event
  std::int64_t since = 0;  // the time of the first one
  std::vector<const Event*> list;
  std::size_t bytes = 0;  // about
  std::string events;
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

}  // namespace

SqlEvents::SqlEvents(Dialect dialect)
    : insert{std::string("INSERT INTO dag_job_event_pages(job_id,last_event_id,since,events) ") +
                 (dialect == Dialect::sqlite ? "VALUES(?1,?2,?3,?4)" : "SELECT * FROM unnest(?1,?2,?3,?4)"),
             {Type::text, Type::integer, Type::integer, Type::text},
             true},
      pages{"SELECT events,last_event_id,since FROM dag_job_event_pages WHERE job_id=?1 AND last_event_id>?2 ORDER BY last_event_id LIMIT ?3",
            {Type::text, Type::integer, Type::integer}},
      rows{"SELECT " + names<Event>(Columns::all) +
               " FROM dag_job_event_rows WHERE job_id=?1 AND event_id>?2 ORDER BY event_id LIMIT ?3",
           {Type::text, Type::integer, Type::integer}} {}

void SqlEvents::add_write(std::vector<Query>& queries, const std::vector<Event>& events) const {
  if (events.empty()) return;
  auto all = std::make_shared<const std::vector<Page>>(pages_of(events));
  const auto fill = [all](std::size_t set, std::span<Value> to) {
    const Page& page = (*all)[set];
    to[0] = page.job_id, to[1] = page.last, to[2] = page.since, to[3] = std::string_view(page.events);
  };
  queries.push_back({&insert, all->size(), fill, {}, {}});
}

Result<> SqlEvents::read_page(const RowView& row, const JobId& job_id, std::int64_t after, std::vector<Event>& out) {
  const auto unreadable = [] { return fail(Code::invalid, "table dag_job_event_pages holds a row that this version cannot read"); };
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
    if (fields.size() > 4) event.event_data = fields[4].json();
    out.push_back(std::move(event));
  }
  return {};
}

}  // namespace baton::store
