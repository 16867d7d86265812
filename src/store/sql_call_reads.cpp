#include "store/sql_call_reads.hpp"

#include "core/call/call.hpp"
#include "store/sql_calls.hpp"

namespace baton::store {
namespace {

using call::CallKey;

std::string keys_of(const std::string& table) {
  return "SELECT DISTINCT tenant_id,service_call_id FROM " + table +
         " WHERE (tenant_id,service_call_id)>(?1,?2) ORDER BY tenant_id,service_call_id LIMIT ?3";
}

std::string strays_of(const std::string& table) {
  return "SELECT count(*) FROM " + table +
         " AS k WHERE NOT EXISTS (SELECT 1 FROM service_calls AS t WHERE t.tenant_id=k.tenant_id AND"
         " t.service_call_id=k.service_call_id)";
}

struct CallReadStatements {
  Statement one{select_row_at_head(), {Type::text, Type::text}};
  Statement streams{columns_at_head("page") +
                        " FROM (SELECT * FROM service_call_events WHERE (tenant_id,service_call_id,version)>(?1,?2,?3)"
                        " ORDER BY tenant_id,service_call_id,version LIMIT ?4) AS page LEFT JOIN service_calls AS t"
                        " ON t.tenant_id=page.tenant_id AND t.service_call_id=page.service_call_id"
                        " ORDER BY page.tenant_id,page.service_call_id,page.version",
                    {Type::text, Type::text, Type::integer, Type::integer}};
  Statement row{select<call::Call>() + " WHERE tenant_id=?1 AND service_call_id=?2",
                {Type::text, Type::text}};
  Statement request{select<call::Request>() + " WHERE tenant_id=?1 AND service_call_id=?2",
                    {Type::text, Type::text}};
  Statement events{select<call::EventRow>() + " WHERE tenant_id=?1 AND service_call_id=?2 ORDER BY version",
                   {Type::text, Type::text}};
  Statement due{
      "SELECT due_at,service_call_id FROM service_calls WHERE status='Scheduled' AND tenant_id=?1 AND "
      "origin=?2"
      " AND (due_at,service_call_id)>(?3,?4) AND due_at<=?5 ORDER BY due_at,service_call_id LIMIT ?6",
      {Type::text, Type::text, Type::time, Type::text, Type::time, Type::integer}};
  Statement destinations{
      "SELECT tenant_id,origin,min(due_at) FROM service_calls WHERE status='Scheduled' AND due_at>?1"
      " AND due_at<=?2 GROUP BY tenant_id,origin",
      {Type::time, Type::time}};
  Statement running{
      "SELECT tenant_id,service_call_id FROM service_calls WHERE status='Running'"
      " AND (tenant_id,service_call_id)>(?1,?2) ORDER BY tenant_id,service_call_id LIMIT ?3",
      {Type::text, Type::text, Type::integer}};
  Statement keys{"SELECT tenant_id,service_call_id FROM (" + keys_of("service_calls") +
                     ") AS a UNION"
                     " SELECT tenant_id,service_call_id FROM (" +
                     keys_of("service_call_events") +
                     ") AS b UNION"
                     " SELECT tenant_id,service_call_id FROM (" +
                     keys_of("service_call_requests") +
                     ") AS c"
                     " ORDER BY tenant_id,service_call_id LIMIT ?3",
                 {Type::text, Type::text, Type::integer}};
  Statement tag{"SELECT 1 FROM service_call_tags WHERE tenant_id=?1 AND tag=?2 AND service_call_id=?3",
                {Type::text, Type::text, Type::text}};
  Statement strays{"SELECT (" + strays_of("service_call_tags") + ")+(" + strays_of("service_call_keys") + ")",
                   {}};
};

const CallReadStatements& sql() {
  static const CallReadStatements statements;
  return statements;
}

CallKey key_at(const RowView& row, int column) {
  return {Tenant{std::string(row.text(column))}, call::CallId{std::string(row.text(column + 1))}};
}

// A page of a range of time is read from the index by time, one of a tag from its tags, any other from the
// ids.
Statement calls_statement(const CallFilter& filter) {
  const bool by_time = filter.is_by_time(), by_tag = !by_time && !filter.tags.empty();
  Statement s{"", {Type::text, Type::text, Type::integer}};
  const auto parameter = [&](Type type) {
    s.parameters.push_back(type);
    return "?" + std::to_string(s.parameters.size());
  };
  std::string from = " FROM service_calls AS t", where = " WHERE t.tenant_id=?1",
              order = " ORDER BY t.service_call_id DESC";
  if (by_time) {
    where += " AND (t.due_at,t.service_call_id)>(" + parameter(Type::time) + ",?2)";
    order = " ORDER BY t.due_at,t.service_call_id";
  } else if (by_tag) {
    from = " FROM service_call_tags AS k CROSS JOIN service_calls AS t";
    where =
        " WHERE k.tenant_id=?1 AND k.service_call_id<?2 AND t.tenant_id=?1 AND "
        "t.service_call_id=k.service_call_id";
    order = " ORDER BY k.service_call_id DESC";
  } else {
    where += " AND t.service_call_id<?2";
  }
  for (std::size_t i = 0; i < filter.tags.size(); ++i) {
    const std::string tag = parameter(Type::text);
    where += by_tag && i == 0
                 ? " AND k.tag=" + tag
                 : " AND EXISTS (SELECT 1 FROM service_call_tags AS o WHERE o.tenant_id=?1 AND o.tag=" + tag +
                       " AND o.service_call_id=t.service_call_id)";
  }
  if (filter.status) where += " AND t.status=" + parameter(Type::text);
  if (filter.name) where += " AND t.name=" + parameter(Type::text);
  if (filter.due_until) where += " AND t.due_at<" + parameter(Type::time);
  s.sql = "SELECT " + names<call::Call>(Columns::all, "t.") + from + where + order + " LIMIT ?3";
  return s;
}

}  // namespace

std::vector<Statement> call_read_statements() {
  std::vector<Statement> all{sql().one, sql().streams,      sql().row,     sql().request, sql().events,
                             sql().due, sql().destinations, sql().running, sql().tag};
  for (const bool by_tag : {false, true})
    for (const bool by_time : {false, true})
      for (const bool by_status : {false, true})
        for (const bool by_name : {false, true}) {
          CallFilter filter;
          if (by_tag) filter.tags = {"a", "b"};
          if (by_time) filter.due_from = filter.due_until = Time{};
          if (by_status) filter.status = call::Status::failed;
          if (by_name) filter.name = "n";
          all.push_back(calls_statement(filter));
        }
  return all;
}

Result<std::optional<call::Call>> SqlCallReads::service_call(const CallKey& key) {
  TRY_ASSIGN(auto found,
             reader_.rows<RowAtHead>(sql().one, {encode(key.tenant), encode(key.id)}, read_row_at_head));
  if (found.empty()) return std::nullopt;
  if (found.front().is_snapshot) return *std::move(found.front().row);
  TRY_ASSIGN(const auto events, call_events(key));
  TRY_ASSIGN(auto folded, fold_stream(events));
  return folded;
}

Result<std::optional<call::Call>> SqlCallReads::call_row(const CallKey& key) {
  return reader_.first<call::Call>(sql().row, {encode(key.tenant), encode(key.id)});
}

// A row is compared with the last event of its stream; whether the last one of a page is that, the next page tells.
Result<CallReads::Streams> SqlCallReads::streams_without_row(const call::EventKey& after,
                                                             std::size_t events) {
  using Looked = std::pair<call::EventKey, bool>;
  TRY_ASSIGN(
      auto page,
      reader_.rows<Looked>(sql().streams,
                           {encode(after.call.tenant), encode(after.call.id), after.version, number(events + 1)},
                           [](const RowView& row) -> Result<Looked> {
                             const auto found = read_row_at_head(row);  // an event that cannot be read: not ours to mend
                             return Looked{{key_at(row, 0), row.integer(2)}, !found || found->is_snapshot};
                           }));
  Streams found;
  const bool more = page.size() > events;
  for (std::size_t i = 0; i < page.size() - (more ? 1 : 0); ++i) {
    const auto& [key, is_right] = page[i];
    const bool is_last = i + 1 == page.size() || page[i + 1].first.call != key.call;
    if (is_last && !is_right) found.without_row.push_back(key.call);
  }
  if (more) found.last = page[page.size() - 2].first;
  return found;
}

Result<std::vector<call::EventRow>> SqlCallReads::call_events(const CallKey& key) {
  return reader_.all<call::EventRow>(sql().events, {encode(key.tenant), encode(key.id)});
}

Result<std::vector<call::Call>> SqlCallReads::calls(const CallFilter& filter,
                                                    const std::optional<call::Due>& last, std::size_t limit) {
  const Statement statement = calls_statement(filter);
  constexpr std::string_view after_all = "~";  // ids are hexadecimal
  std::vector<Value> values{encode(filter.tenant), after_all, number(limit)};
  // The beginning of the range is where the first page begins.
  const call::Due first{filter.due_from.value_or(Time{} - Duration{1}), {}};
  const call::Due from = last ? std::max(*last, first) : first;
  if (filter.is_by_time()) values[1] = encode(from.id), values.push_back(from.at);
  if (last && !filter.is_by_time()) values[1] = encode(last->id);
  for (const std::string& tag : filter.tags) values.push_back(encode(tag));
  if (filter.status) values.push_back(encode(*filter.status));
  if (filter.name) values.push_back(encode(*filter.name));
  if (filter.due_until) values.push_back(*filter.due_until);
  // A row that is damaged does not spoil the page: it is what its events come to.
  using Found = std::pair<CallKey, std::optional<call::Call>>;
  TRY_ASSIGN(auto rows,
             reader_.rows<Found>(statement, std::move(values), [](const RowView& view) -> Result<Found> {
               auto row = read<call::Call>(view);
               if (row && call::has_readable_documents(*row)) return Found{key_at(view, 0), *std::move(row)};
               return Found{key_at(view, 0), std::nullopt};
             }));
  std::vector<call::Call> page;
  for (auto& [key, row] : rows) {
    if (!row) {
      TRY_ASSIGN(row, service_call(key));
    }
    if (row) page.push_back(*std::move(row));
  }
  return page;
}

namespace {

Time time_at(const RowView& row, int column, Time otherwise) {
  Time time;
  return decode(row, column, time) ? time : otherwise;
}

Result<std::int64_t> integer_at(const RowView& row) { return row.integer(0); }

}  // namespace

Result<std::vector<call::Due>> SqlCallReads::due_calls(const call::Agenda::Refill& wanted) {
  const auto& [to, after, until, limit] = wanted;
  Time last = after.at;
  return reader_.rows<call::Due>(
      sql().due, {encode(to.tenant), encode(to.origin), after.at, encode(after.id), until, number(limit)},
      [&](const RowView& row) -> Result<call::Due> {
        return call::Due{last = time_at(row, 0, last), call::CallId{std::string(row.text(1))}};
      });
}

Result<std::vector<std::pair<call::Destination, Time>>> SqlCallReads::destinations_due(Time after,
                                                                                       Time until) {
  using Found = std::pair<call::Destination, Time>;
  return reader_.rows<Found>(sql().destinations, {after, until}, [&](const RowView& row) -> Result<Found> {
    return Found{{Tenant{std::string(row.text(0))}, std::string(row.text(1))}, time_at(row, 2, after)};
  });
}

Result<std::vector<CallKey>> SqlCallReads::running_calls(const CallKey& after, std::size_t limit) {
  return reader_.rows<CallKey>(sql().running, {encode(after.tenant), encode(after.id), number(limit)},
                               [](const RowView& row) -> Result<CallKey> { return key_at(row, 0); });
}

Result<std::optional<call::Request>> SqlCallReads::call_request(const CallKey& key) {
  return reader_.first<call::Request>(sql().request, {encode(key.tenant), encode(key.id)});
}

Result<std::vector<CallKey>> SqlCallReads::call_keys(const CallKey& after, std::size_t limit) {
  return reader_.rows<CallKey>(sql().keys, {encode(after.tenant), encode(after.id), number(limit)},
                               [](const RowView& row) -> Result<CallKey> { return key_at(row, 0); });
}

Result<bool> SqlCallReads::has_tag(const CallKey& key, const std::string& tag) {
  TRY_ASSIGN(const auto found, reader_.rows<std::int64_t>(
                                   sql().tag, {encode(key.tenant), encode(tag), encode(key.id)}, integer_at));
  return !found.empty();
}

Result<std::int64_t> SqlCallReads::count_stray_rows() {
  TRY_ASSIGN(const auto found, reader_.rows<std::int64_t>(sql().strays, {}, integer_at));
  return found.front();
}

}  // namespace baton::store
