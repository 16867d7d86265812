#include "store/sql_call_reads.hpp"

namespace baton::store {
namespace {

using call::CallKey;

struct Statements {
  Statement one{select<call::Call>() + " WHERE tenant_id=?1 AND service_call_id=?2", {Type::text, Type::text}};
  Statement request{select<call::Request>() + " WHERE tenant_id=?1 AND service_call_id=?2", {Type::text, Type::text}};
  Statement events{select<call::EventRow>() + " WHERE tenant_id=?1 AND service_call_id=?2 ORDER BY version",
                   {Type::text, Type::text}};
  Statement due{"SELECT due_at,service_call_id FROM service_calls WHERE status='Scheduled' AND tenant_id=?1 AND origin=?2"
                " AND (due_at,service_call_id)>(?3,?4) ORDER BY due_at,service_call_id LIMIT ?5",
                {Type::text, Type::text, Type::time, Type::text, Type::integer}};
  Statement next_lane{"SELECT tenant_id,origin,due_at FROM service_calls WHERE status='Scheduled'"
                      " AND (tenant_id,origin)>(?1,?2) ORDER BY tenant_id,origin,due_at LIMIT 1",
                      {Type::text, Type::text}};
  Statement running{"SELECT tenant_id,service_call_id FROM service_calls WHERE status='Running'"
                    " AND (tenant_id,service_call_id)>(?1,?2) ORDER BY tenant_id,service_call_id LIMIT ?3",
                    {Type::text, Type::text, Type::integer}};
  Statement all{select<call::Call>() +
                    " WHERE (tenant_id,service_call_id)>(?1,?2) ORDER BY tenant_id,service_call_id LIMIT ?3",
                {Type::text, Type::text, Type::integer}};
};

const Statements& sql() {
  static const Statements statements;
  return statements;
}

CallKey key_at(const RowView& row, int column) {
  return {Tenant{std::string(row.text(column))}, call::CallId{std::string(row.text(column + 1))}};
}

}  // namespace

Statement calls_statement(const CallFilter& filter) {
  Statement s{"", {Type::text, Type::text, Type::integer}};
  const auto parameter = [&](Type type) {
    s.parameters.push_back(type);
    return "?" + std::to_string(s.parameters.size());
  };
  std::string from = " FROM service_calls AS t", where = " WHERE t.tenant_id=?1 AND t.service_call_id<?2";
  for (std::size_t i = 0; i < filter.tags.size(); ++i) {
    const std::string tag = parameter(Type::text);
    if (i == 0) {
      from = " FROM service_call_tags AS k CROSS JOIN service_calls AS t";
      where = " WHERE k.tenant_id=?1 AND k.tag=" + tag +
              " AND k.service_call_id<?2 AND t.tenant_id=?1 AND t.service_call_id=k.service_call_id";
    } else {
      where += " AND EXISTS (SELECT 1 FROM service_call_tags AS o WHERE o.tenant_id=?1 AND o.tag=" + tag +
               " AND o.service_call_id=t.service_call_id)";
    }
  }
  if (filter.status) where += " AND t.status=" + parameter(Type::text);
  if (filter.name) where += " AND t.name=" + parameter(Type::text);
  if (filter.due_from) where += " AND t.due_at>=" + parameter(Type::time);
  if (filter.due_until) where += " AND t.due_at<" + parameter(Type::time);
  s.sql = "SELECT " + names<call::Call>(Columns::all, "t.") + from + where + " ORDER BY " +
          (filter.tags.empty() ? "t" : "k") + ".service_call_id DESC LIMIT ?3";
  return s;
}

Result<std::optional<call::Call>> SqlCallReads::service_call(const CallKey& key) {
  return reader_.first<call::Call>(sql().one, {encode(key.tenant), encode(key.id)});
}

Result<std::vector<call::EventRow>> SqlCallReads::call_events(const CallKey& key) {
  return reader_.all<call::EventRow>(sql().events, {encode(key.tenant), encode(key.id)});
}

Result<std::vector<call::Call>> SqlCallReads::calls(const CallFilter& filter, const std::string& before,
                                                    std::size_t limit) {
  const Statement statement = calls_statement(filter);
  constexpr std::string_view after_all = "~";  // ids are hexadecimal
  std::vector<Value> values{encode(filter.tenant), before.empty() ? Value{after_all} : encode(before), number(limit)};
  for (const std::string& tag : filter.tags) values.push_back(encode(tag));
  if (filter.status) values.push_back(encode(*filter.status));
  if (filter.name) values.push_back(encode(*filter.name));
  if (filter.due_from) values.push_back(*filter.due_from);
  if (filter.due_until) values.push_back(*filter.due_until);
  return reader_.all<call::Call>(statement, std::move(values));
}

namespace {

Result<Time> time_at(const RowView& row, int column) {
  Time time;
  if (!decode(row, column, time)) return fail(Code::invalid, "a service call has a time that cannot be read");
  return time;
}

}  // namespace

Result<std::vector<call::Due>> SqlCallReads::due_calls(const call::Lane& lane, const call::Due& after,
                                                       std::size_t limit) {
  return reader_.rows<call::Due>(
      sql().due, {encode(lane.tenant), encode(lane.origin), after.at, encode(after.id), number(limit)},
      [](const RowView& row) -> Result<call::Due> {
        TRY_ASSIGN(const Time at, time_at(row, 0));
        return call::Due{at, call::CallId{std::string(row.text(1))}};
      });
}

Result<std::optional<std::pair<call::Lane, Time>>> SqlCallReads::next_lane(const call::Lane& after) {
  using Found = std::pair<call::Lane, Time>;
  TRY_ASSIGN(auto found, reader_.rows<Found>(sql().next_lane, {encode(after.tenant), encode(after.origin)},
                                             [](const RowView& row) -> Result<Found> {
                                               TRY_ASSIGN(const Time at, time_at(row, 2));
                                               return Found{{Tenant{std::string(row.text(0))}, std::string(row.text(1))}, at};
                                             }));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Result<std::vector<CallKey>> SqlCallReads::running_calls(const CallKey& after, std::size_t limit) {
  return reader_.rows<CallKey>(sql().running, {encode(after.tenant), encode(after.id), number(limit)},
                               [](const RowView& row) -> Result<CallKey> { return key_at(row, 0); });
}

Result<std::optional<call::Request>> SqlCallReads::call_request(const CallKey& key) {
  return reader_.first<call::Request>(sql().request, {encode(key.tenant), encode(key.id)});
}

Result<std::vector<call::Call>> SqlCallReads::all_calls(const CallKey& after, std::size_t limit) {
  return reader_.all<call::Call>(sql().all, {encode(after.tenant), encode(after.id), number(limit)});
}

}  // namespace baton::store
