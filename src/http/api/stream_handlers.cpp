// What changes, as server-sent events. A stream is a list of the records that concern it, which it shares
// with the feed; each is written out when the client has taken the one before. So a slow client costs no
// memory beyond what the feed keeps, and is cut off when it falls behind that.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <deque>

#include "http/api/routes.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"
#include "http/wire/subscriptions.hpp"

namespace baton::http {
namespace {

constexpr std::size_t chunk_bytes = 64 * 1024;  // written at once
constexpr std::size_t topics_max = 50;

// Where a client is: it has seen this change of this commit, and all before it.
struct Position {
  std::int64_t number = 0;
  std::size_t place = 0;  // from 1; 0: none of this commit
};
constexpr std::size_t whole_commit = 1U << 30;

// "start-number-place": clients take it as it is. A number counts within one start of the server.
std::string id_of(const Feed& feed, Position position) {
  return fmt::format("{}-{}-{}", feed.start(), position.number, position.place);
}

struct Resumed {
  std::string start;
  Position position;
};

std::optional<Resumed> read_id(const std::string& text) {
  const auto last = text.rfind('-');
  const auto middle = last == 0 || last == text.npos ? text.npos : text.rfind('-', last - 1);
  if (middle == text.npos) return std::nullopt;
  const auto number = to_integer(std::string_view(text).substr(middle + 1, last - middle - 1));
  const auto place = to_integer(std::string_view(text).substr(last + 1));
  if (!number || !place || *number < 0 || *place < 0) return std::nullopt;
  return Resumed{text.substr(0, middle), {*number, static_cast<std::size_t>(*place)}};
}

void append_change(std::string& out, const CommitRecord& record, const baton::Change& change) {
  out += '{';
  append_member(out, "kind", name(change.subject));
  append_member(out, "id", change.id);
  append_member(out, "what", change.what);
  if (!change.status.empty()) append_member(out, "status", change.status);
  if (!change.node.empty()) append_member(out, "node_id", change.node);
  if (!change.workflow_id.empty()) append_member(out, "workflow_id", change.workflow_id);
  if (change.version != 0) append_member(out, "version", change.version);
  if (change.runbook_id != 0) append_member(out, "runbook_id", change.runbook_id);
  append_member(out, "tenant", change.tenant);
  append_member(out, "at", record.at);
  append_member(out, "commit", record.number);
  out += '}';
}

class ChangeStream final : public BodyStream, public Subscriber {
 public:
  explicit ChangeStream(Services& services)
      : Subscriber(*services.subscriptions),
        services_(services),
        open_(services.metrics.gauge("baton_streams", "Open streams of changes.")),
        cut_(services.metrics.counter("baton_streams_cut_total",
                                      "Streams cut off because their reader was too slow.")) {
    open_.set(static_cast<std::int64_t>(++services_.streams));
    rest();
  }
  ~ChangeStream() override { open_.set(static_cast<std::int64_t>(--services_.streams)); }

  // After it listens. Without an id it begins now; with one, after it or, where that is not possible, now and
  // with a word about it.
  void begin(const std::optional<std::string>& last_event_id);
  Task<bool> next(Context& context, std::string& out) override;
  void cut_off() override { complain("did not take what it was sent"); }

 private:
  void hear(const Record& record) override;
  void miss() override { lose("too_far_behind"); }
  void resume_after(const std::string& last_event_id);
  void tell_gap(std::string_view why);
  void lose(std::string_view why);
  void complain(std::string_view why);
  void end(std::string& out, std::string_view why);
  void write_records(std::string& out);
  bool write_record(std::string& out, const CommitRecord& record);
  [[nodiscard]] bool concerns_us(const baton::Change& change) const;
  void rest() { heartbeat_at_ = std::chrono::steady_clock::now() + services_.options.heartbeat_time; }
  [[nodiscard]] const Feed& feed() const { return all().feed(); }

  Services& services_;
  metrics::Gauge& open_;
  metrics::Counter& cut_;
  std::deque<Record> records_;  // to be written; the feed has them all
  Position written_;            // and nothing before it is missing
  std::int64_t skip_ = 0;       // records up to this one are not for us
  std::string first_;           // to be sent before anything else
  std::string_view lost_;       // why it cannot go on
  SteadyTime heartbeat_at_;
};

void ChangeStream::begin(const std::optional<std::string>& last_event_id) {
  written_ = {feed().last(), whole_commit};
  first_ = "retry: 1000\n";
  if (last_event_id) resume_after(*last_event_id);
  skip_ = records_.empty() ? written_.number : records_.back()->number;
  first_ += "id: " + id_of(feed(), written_) + "\n\n";
}

void ChangeStream::resume_after(const std::string& last_event_id) {
  const auto last = read_id(last_event_id);
  if (!last) return tell_gap("unknown_id");
  if (last->start != feed().start()) return tell_gap("restarted");
  if (last->position.number > feed().last()) return tell_gap("unknown_id");
  // With the commit that it may have seen a part of.
  const std::int64_t number = last->position.number;
  const auto records =
      feed().after(last->position.place == whole_commit || number == 0 ? number : number - 1);
  if (!records) return tell_gap("too_far_behind");
  records_.assign(records->begin(), records->end());
  written_ = last->position;
}

// Without the blank line that ends it: an id may follow.
std::string told(std::string_view event, std::string_view why) {
  return fmt::format("event: {}\ndata: {}\n", event, json_object("why", why).text);
}

void ChangeStream::tell_gap(std::string_view why) { first_ += told("gap", why); }

void ChangeStream::hear(const Record& record) {
  if (record->number <= skip_ || !lost_.empty()) return;
  // What the feed no longer keeps would be kept by us alone.
  if (!records_.empty() && !feed().reaches(records_.front()->number - 1)) return lose("too_far_behind");
  records_.push_back(record);
}

void ChangeStream::lose(std::string_view why) {
  lost_ = why;
  records_.clear();
  complain("is too far behind");
}

void ChangeStream::complain(std::string_view why) {
  cut_.add();
  spdlog::warn("a stream is cut off: its reader {}", why);
}

void ChangeStream::end(std::string& out, std::string_view why) { out += told("end", why) + "\n"; }

bool ChangeStream::concerns_us(const baton::Change& change) const {
  bool concerns = false;
  each_topic(change, [&](const std::string& topic) { concerns = concerns || listens_to(topic); });
  return concerns;
}

// False: there is more of it, for the next chunk.
bool ChangeStream::write_record(std::string& out, const CommitRecord& record) {
  if (!record.is_whole) {
    written_ = {record.number, whole_commit};
    out += told("gap", "too_much") + "id: " + id_of(feed(), written_) + "\n\n";
    return true;
  }
  const std::size_t seen = record.number == written_.number ? written_.place : 0;
  Changes::Reader reader(record.changes);
  std::size_t place = 0;
  for (baton::Change change; reader.next(change);) {
    if (++place <= seen || !concerns_us(change)) continue;
    if (out.size() >= chunk_bytes) return false;
    written_ = {record.number, place};
    out.append("event: ").append(name(change.subject)).append("\nid: ").append(id_of(feed(), written_));
    out += "\ndata: ";
    append_change(out, record, change);
    out += "\n\n";
  }
  written_ = {record.number, whole_commit};
  return true;
}

void ChangeStream::write_records(std::string& out) {
  while (!records_.empty() && out.size() < chunk_bytes) {
    const Record record = records_.front();
    if (!write_record(out, *record)) return;
    records_.pop_front();
  }
}

Task<bool> ChangeStream::next(Context& context, std::string& out) {
  out += std::exchange(first_, {});
  while (out.empty()) {
    write_records(out);
    if (!lost_.empty()) {
      out += told("gap", lost_) + "\n";
      end(out, "too_slow");
      co_return false;
    }
    if (!out.empty()) break;
    if (context.wait_state.stopping) {
      end(out, "stopping");
      co_return false;
    }
    const Woken woken = co_await wait(context.wait_state, heartbeat_at_);
    if (context.wait_state.over) co_return false;
    if (woken != Woken::by_time) continue;
    auto refused = co_await authorize(context, Permission::read);
    if (context.wait_state.over) co_return false;
    if (refused) {
      end(out, "unauthorized");
      co_return false;
    }
    // An id without data moves a client's place without telling it anything: what happened meanwhile was not
    // for it.
    if (records_.empty() && all().position() > written_.number) written_ = {all().position(), whole_commit};
    out += ": heartbeat\nid: " + id_of(feed(), written_) + "\n\n";
  }
  rest();
  co_return true;
}

// --- topics

struct Topics {
  std::vector<std::string> names;     // of subscriptions
  std::vector<std::string> runbooks;  // whose batches count too
};

// What a client may name, and what it means.
std::optional<Response> add_topic(Topics& topics, const std::string& text, const std::string& tenant) {
  const auto colon = text.find(':');
  const std::string_view kind = std::string_view(text).substr(0, colon);
  const std::string id = colon == text.npos ? "" : text.substr(colon + 1);
  if (text == "all") {
    topics.names.push_back(tenant_topic(tenant));
    return std::nullopt;
  }
  if (text == "queues") {
    topics.names.push_back(queues_topic(tenant));
    return std::nullopt;
  }
  for (const Subject::Type subject : {Subject::Type::job, Subject::Type::batch, Subject::Type::runbook,
                                      Subject::Type::call, Subject::Type::queue}) {
    if (name(subject) != kind || !is_printable(id, 300)) continue;
    const bool of_runbooks = subject == Subject::Type::batch || subject == Subject::Type::runbook;
    if (of_runbooks && tenant != "default")
      return problem(404, "runbook_not_found",
                     "runbooks belong to the tenant 'default', not to '" + tenant + "'");
    topics.names.push_back(subject_topic(subject, tenant, id));
    if (subject == Subject::Type::runbook) topics.runbooks.push_back(id);
    return std::nullopt;
  }
  return problem(
      "the query has invalid parameters",
      {{"topic", "must be all, queues, or job:, batch:, runbook:, call: or queue: with what it is about"}});
}

std::expected<Topics, Response> read_topics(const Request& request) {
  Topics topics;
  for (const auto& [key, value] : request.arguments) {
    if (key != "topic") continue;
    if (auto wrong = add_topic(topics, value, request.tenant.value))
      return std::unexpected(*std::move(wrong));
  }
  if (topics.names.empty()) topics.names.push_back(tenant_topic(request.tenant.value));
  if (topics.names.size() > topics_max)
    return std::unexpected(
        problem("the query has invalid parameters", {{"topic", fmt::format("at most {}", topics_max)}}));
  return topics;
}

}  // namespace

Task<Response> open_stream(Context& context) {
  auto topics = read_topics(context.request);
  if (!topics) co_return std::move(topics.error());
  // Others must get through while streams are open.
  if (context.services.streams >= context.services.options.connections_max / 2)
    co_return problem(503, "too_many_streams", "the server has too many streams");
  const auto stream = std::make_shared<ChangeStream>(context.services);
  for (std::string& topic : topics->names) stream->listen(std::move(topic));
  for (const std::string& runbook : topics->runbooks) {
    auto query = [runbook](Reads& reads) { return reads.versions(runbook); };
    const auto versions = co_await context.read(std::move(query));
    if (!versions) co_return problem(versions.error());
    for (const auto& version : *versions)
      stream->listen(batches_topic(context.request.tenant.value, version.id));
  }
  const auto* asked = context.request.argument("last_event_id");
  stream->begin(asked ? std::optional(*asked) : context.request.last_event_id);
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream = stream;
  co_return response;
}

}  // namespace baton::http
