// What changes, as server-sent events. A stream is a list of the records that concern it, which it shares
// with the feed; each is written out when the client has taken the one before. So a slow client costs no
// memory beyond what the feed keeps, and is cut off when it falls behind that.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>

#include "base/ids.hpp"
#include "http/api/routes.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"
#include "http/wire/subscriptions.hpp"

namespace baton::http {
namespace {

constexpr std::size_t chunk_bytes = 64 * 1024;  // written at once
constexpr std::size_t looked_at_max = 5'000;    // changes, before others get their turn
constexpr std::size_t topics_max = 50;
constexpr std::size_t tenant_streams_min = 8;
constexpr std::string_view stream_parameters = "topic, last_event_id";

using std::chrono::steady_clock;

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

// A change as it is sent.
void append_change_event(std::string& out, const Feed& feed, const CommitRecord& record, std::size_t place,
                         const baton::Change& change) {
  out.append("event: ").append(name(change.subject));
  out.append("\nid: ").append(id_of(feed, {record.number, place})).append("\ndata: ");
  append_change(out, record, change);
  out += "\n\n";
}

class ChangeStream final : public BodyStream, public Subscriber {
 public:
  explicit ChangeStream(Context& context)
      : Subscriber(*context.services.subscriptions),
        services_(context.services),
        tenant_(context.request.tenant.value),
        open_(services_.metrics.gauge("baton_streams", "Open streams of changes.")),
        cut_(services_.metrics.counter("baton_streams_cut_total",
                                       "Streams cut off because their reader was too slow.")) {
    open_.set(static_cast<std::int64_t>(services_.streams.open(tenant_)));
    authorize_before(context.request.allowed_until);
  }
  ~ChangeStream() override { open_.set(static_cast<std::int64_t>(services_.streams.close(tenant_))); }

  // After it listens. Without an id it begins now; with one, after it or, where that is not possible, now and
  // with a word about it.
  void begin(const std::optional<std::string>& last_event_id);
  Task<bool> next(Context& context, std::string& out) override;
  void cut_off() override { complain("did not take what it was sent"); }

 private:
  // A record, and how far it was read.
  struct Reading {
    explicit Reading(Record of) : record(std::move(of)), reader(record->changes) {}
    Record record;
    Changes::Reader reader;
    std::size_t place = 0;
  };

  void hear(const Record& record) override;
  void miss() override { lose("too_far_behind"); }
  void resume_after(const std::string& last_event_id);
  void tell_gap(std::string_view why);
  void lose(std::string_view why);
  void complain(std::string_view why);
  void end(std::string& out, std::string_view why);
  Task<bool> may_go_on(Context& context);
  // Early enough that what is told is never told by a token that was looked up longer ago than the cache's
  // time.
  void authorize_before(SteadyTime until) { authorize_at_ = until - services_.options.token_cache_time / 2; }
  void write_records(std::string& out);
  bool read_on(std::string& out, std::size_t& looked_at);
  void write_heartbeat(std::string& out);
  [[nodiscard]] bool has_more() const { return reading_ || !records_.empty(); }
  [[nodiscard]] bool concerns_us(const baton::Change& change);
  [[nodiscard]] const Feed& feed() const { return all().feed(); }

  Services& services_;
  const std::string tenant_;
  SteadyTime authorize_at_{};
  bool hears_all_ = false;  // of its tenant
  bool is_allowed_ = true;  // false: the token could not be looked up; nothing is told until it is
  metrics::Gauge& open_;
  metrics::Counter& cut_;
  std::optional<Reading> reading_;  // to be written; the feed has them all
  std::deque<Record> records_;      // after that one
  Position written_;                // and nothing before it is missing
  std::int64_t skip_ = 0;           // records up to this one are not for us
  std::string first_;               // to be sent before anything else
  std::string_view lost_;           // why it cannot go on
  std::string topic_;               // of the change that is looked at
  SteadyTime rest_until_{};
  SteadyTime heartbeat_at_{};
};

void ChangeStream::begin(const std::optional<std::string>& last_event_id) {
  hears_all_ = listens_to(tenant_topic(tenant_));
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
  const std::int64_t oldest = reading_            ? reading_->record->number
                              : !records_.empty() ? records_.front()->number
                                                  : record->number;
  if (oldest != record->number && !feed().reaches(oldest - 1)) return lose("too_far_behind");
  records_.push_back(record);
}

void ChangeStream::lose(std::string_view why) {
  if (!lost_.empty()) return;
  lost_ = why;
  records_.clear();
  reading_.reset();
  complain("is too far behind");
}

void ChangeStream::complain(std::string_view why) {
  cut_.add();
  spdlog::warn("a stream is cut off: its reader {}", why);
}

void ChangeStream::end(std::string& out, std::string_view why) { out += told("end", why) + "\n"; }

bool ChangeStream::concerns_us(const baton::Change& change) {
  if (change.tenant != tenant_) return false;
  if (hears_all_) return true;
  bool concerns = false;
  each_topic(change, topic_, [&](const std::string& topic) { concerns = concerns || listens_to(topic); });
  return concerns;
}

// False: there is more of it, for the next chunk.
bool ChangeStream::read_on(std::string& out, std::size_t& looked_at) {
  const CommitRecord& record = *reading_->record;
  if (record.untold.contains(tenant_)) {
    written_ = {record.number, whole_commit};
    out += told("gap", "too_much") + "id: " + id_of(feed(), written_) + "\n\n";
    return true;
  }
  const std::size_t seen = record.number == written_.number ? written_.place : 0;
  while (looked_at < looked_at_max && out.size() < chunk_bytes) {
    baton::Change change;
    if (!reading_->reader.next(change)) {
      written_ = {record.number, whole_commit};
      return true;
    }
    ++looked_at;
    if (++reading_->place <= seen || !concerns_us(change)) continue;
    written_ = {record.number, reading_->place};
    const auto write = [&](std::string& to) {
      append_change_event(to, feed(), record, reading_->place, change);
    };
    out += services_.event_texts.of({record.number, reading_->place}, write);
  }
  return false;
}

void ChangeStream::write_records(std::string& out) {
  for (std::size_t looked_at = 0; has_more();) {
    if (!reading_) {
      reading_.emplace(std::move(records_.front()));
      records_.pop_front();
    }
    if (!read_on(out, looked_at)) return;
    reading_.reset();
  }
}

// An id without data moves a client's place without telling it anything: what happened meanwhile was not for
// it.
void ChangeStream::write_heartbeat(std::string& out) {
  if (!has_more() && all().position() > written_.number) written_ = {all().position(), whole_commit};
  out += ": heartbeat\nid: " + id_of(feed(), written_) + "\n\n";
}

// Whether the token is still good. When that cannot be found out, the stream stays and tells nothing.
Task<bool> ChangeStream::may_go_on(Context& context) {
  const auto refused = co_await authorize(context, Permission::read);
  is_allowed_ = !refused;
  const auto soon = steady_clock::now() + services_.options.token_cache_time;
  authorize_before(refused ? soon : context.request.allowed_until);
  co_return !refused || (refused->status != 401 && refused->status != 403);
}

Task<bool> ChangeStream::next(Context& context, std::string& out) {
  out += std::exchange(first_, {});
  if (rest_until_ > steady_clock::now() && !context.wait_state.stopping) co_await rest(context.wait_state, rest_until_);
  while (out.empty()) {
    if (context.wait_state.over) co_return false;
    if (!lost_.empty()) {
      out += told("gap", lost_) + "\n";
      end(out, "too_slow");
      co_return false;
    }
    if (steady_clock::now() >= authorize_at_) {
      const bool goes_on = co_await may_go_on(context);
      if (context.wait_state.over) co_return false;
      if (!goes_on) {
        end(out, "unauthorized");
        co_return false;
      }
    }
    if (is_allowed_) write_records(out);
    if (!out.empty()) break;
    if (context.wait_state.stopping) {
      end(out, "stopping");
      co_return false;
    }
    if (steady_clock::now() >= heartbeat_at_) {
      write_heartbeat(out);
    } else if (!is_allowed_) {
      co_await rest(context.wait_state, std::min(heartbeat_at_, authorize_at_));
    } else if (has_more()) {
      co_await rest(context.wait_state, steady_clock::now());
    } else {
      co_await wait(context.wait_state, heartbeat_at_);
    }
  }
  const auto now = steady_clock::now();
  heartbeat_at_ = now + services_.options.heartbeat_time;
  rest_until_ = now + services_.streams.rest_time();
  co_return true;
}

// --- topics

struct Topics {
  std::vector<std::string> names;     // of subscriptions
  std::vector<std::string> runbooks;  // whose batches count too
};

// What never can be is more likely a mistake than a wish to wait for it.
bool is_id_of(Subject::Type subject, const std::string& id) {
  switch (id_form(subject)) {
    case IdForm::uuid: return is_uuid(id);
    case IdForm::number: return to_integer(id).value_or(0) > 0;
    case IdForm::name: break;
  }
  return is_printable(id, 300);
}

// all, queues, job:ID, …
std::string known_topics() {
  std::string list = "all, queues";
  for (const Subject::Type subject : subjects_with_topics()) {
    const IdForm form = id_form(subject);
    list.append(", ").append(name(subject));
    list += form == IdForm::uuid ? ":ID" : form == IdForm::number ? ":NUMBER" : ":NAME";
  }
  return list;
}

// What a client may name, and what it means.
std::optional<Response> add_topic(Topics& topics, const std::string& text, const std::string& tenant) {
  const auto colon = text.find(':');
  const std::string_view type = std::string_view(text).substr(0, colon);
  const std::string id = colon == text.npos ? "" : text.substr(colon + 1);
  if (text == "all") {
    topics.names.push_back(tenant_topic(tenant));
    return std::nullopt;
  }
  if (text == "queues") {
    topics.names.push_back(queues_topic(tenant));
    return std::nullopt;
  }
  for (const Subject::Type subject : subjects_with_topics()) {
    if (name(subject) != type) continue;
    if (!is_id_of(subject, id)) break;
    const bool of_runbooks = subject == Subject::Type::batch || subject == Subject::Type::runbook;
    if (of_runbooks && tenant != "default")
      return problem(404, "runbook_not_found",
                     "runbooks belong to the tenant 'default', not to '" + tenant + "'");
    topics.names.push_back(subject_topic(subject, tenant, id));
    if (subject == Subject::Type::runbook) topics.runbooks.push_back(id);
    return std::nullopt;
  }
  return problem("the query has invalid parameters",
                 {{"topic", "'" + clean_text(text, 100) + "' is none; there are " + known_topics()}});
}

std::expected<Topics, Response> read_topics(const Request& request) {
  Topics topics;
  for (const auto& [key, value] : request.arguments) {
    if (key == "last_event_id") continue;
    if (key != "topic")
      return std::unexpected(
          problem("the query has invalid parameters",
                  {{clean_text(key, 100),
                    fmt::format("is no parameter of a stream; there are {}", stream_parameters)}}));
    if (auto wrong = add_topic(topics, value, request.tenant.value))
      return std::unexpected(*std::move(wrong));
  }
  if (topics.names.empty()) topics.names.push_back(tenant_topic(request.tenant.value));
  if (topics.names.size() > topics_max)
    return std::unexpected(
        problem("the query has invalid parameters", {{"topic", fmt::format("at most {}", topics_max)}}));
  return topics;
}

// Others must get through while streams are open, and one tenant must leave some to the others.
Checked refuse_stream(const Context& context) {
  const std::size_t all_max = context.services.options.connections_max / 2;
  if (context.services.streams.count() >= all_max)
    return problem(503, "too_many_streams",
                   fmt::format("the server has {} streams, as many as it takes", all_max));
  const std::size_t tenant_max = std::max(tenant_streams_min, all_max / 8);
  if (context.services.streams.count(context.request.tenant.value) >= tenant_max)
    return problem(503, "too_many_streams",
                   fmt::format("the tenant '{}' has {} streams, as many as one may have",
                               context.request.tenant.value, tenant_max));
  return std::nullopt;
}

}  // namespace

Task<Response> open_stream(Context& context) {
  auto topics = read_topics(context.request);
  if (!topics) co_return std::move(topics.error());
  if (auto refused = refuse_stream(context)) co_return *std::move(refused);
  const auto stream = std::make_shared<ChangeStream>(context);
  for (std::string& topic : topics->names) stream->listen(std::move(topic));
  for (const std::string& runbook : topics->runbooks) {
    auto query = [runbook](Reads& reads) { return reads.versions(runbook); };
    const auto versions = co_await context.read(std::move(query));
    if (!versions) co_return problem(versions.error());
    for (const auto& version : *versions)
      stream->listen(batches_topic(context.request.tenant.value, version.id));
  }
  // A browser that reconnects sends the header, and the address that it was given at first.
  std::optional<std::string> last_event_id = context.request.last_event_id;
  if (const auto* asked = context.request.argument("last_event_id"); asked && !last_event_id)
    last_event_id = *asked;
  stream->begin(last_event_id);
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream = stream;
  co_return response;
}

}  // namespace baton::http
