// For tests: a real server on a port of the system's choice, in front of a scripted engine and a store in
// memory.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <condition_variable>
#include <map>
#include <set>
#include <thread>

#include "http/api/runbook_fixture.hpp"
#include "http/wire/client.hpp"
#include "http/wire/server.hpp"
#include "store/memory/reads.hpp"
#include "store/memory/store.hpp"
#include "tests/support/clocks.hpp"

namespace baton::http {

// Answers with what the test says; none keeps the caller waiting until the test answers.
class ScriptedInbox final : public Inbox {
 public:
  using Script = std::function<std::optional<Reply>(const Command&)>;
  void answer(Script script) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    std::unique_lock lock(mutex_);
    commands_.push_back(command);
    changed_.notify_all();
    auto reply = script_ ? script_(command) : std::nullopt;
    if (!reply) {
      held_.push_back(std::move(waiter));
      return;
    }
    lock.unlock();
    waiter->deliver(*std::move(reply));
  }
  template <class T>
  std::optional<T> wait_for() {
    std::unique_lock lock(mutex_);
    const auto find = [&]() -> const T* {
      for (const auto& command : commands_) {
        if (const auto* found = std::get_if<T>(&command)) return found;
      }
      return nullptr;
    };
    changed_.wait_for(lock, std::chrono::seconds{5}, [&] { return find() != nullptr; });
    const auto* found = find();
    return found == nullptr ? std::nullopt : std::optional<T>(*found);
  }
  template <class T>
  std::vector<T> all() {
    const std::lock_guard lock(mutex_);
    std::vector<T> found;
    for (const auto& command : commands_)
      if (const auto* one = std::get_if<T>(&command)) found.push_back(*one);
    return found;
  }
  std::shared_ptr<Waiter> held() {
    const std::lock_guard lock(mutex_);
    return held_.empty() ? nullptr : held_.back();
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return commands_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Script script_;
  std::vector<Command> commands_;
  std::vector<std::shared_ptr<Waiter>> held_;
};

// Reads of which the test says how many fail as if the connection were lost.
class BreakingReads final : public store::MemoryReads {
 public:
  BreakingReads(const store::MemoryDatabase& database, std::atomic<int>& breaks,
                std::atomic<int>& token_breaks, const std::function<void()>& before)
      : MemoryReads(database), breaks_(breaks), token_breaks_(token_breaks), before_(before) {}
  Result<std::optional<workflow::Job>> job(const workflow::Tenant& tenant,
                                           const workflow::JobId& id) override {
    if (id.value == unreadable)
      return fail(Code::invalid, "table dag_jobs holds a row that this version cannot read");
    TRY(connection(breaks_));
    if (before_) before_();
    return MemoryReads::job(tenant, id);
  }
  Result<bool> has_job(const workflow::Tenant& tenant, const workflow::JobId& id) override {
    TRY(connection(breaks_));
    return MemoryReads::has_job(tenant, id);
  }
  Result<std::optional<Token>> token_by_hash(const std::string& hash) override {
    TRY(connection(token_breaks_));
    return MemoryReads::token_by_hash(hash);
  }

 private:
  static constexpr std::string_view unreadable = "unreadable";  // the id of a job
  static Result<> connection(std::atomic<int>& breaks) {
    if (breaks.load() <= 0) return {};
    --breaks;
    return fail(Code::unavailable, "connection lost");
  }
  std::atomic<int>& breaks_;
  std::atomic<int>& token_breaks_;
  const std::function<void()>& before_;
};

// A connection of which a test decides every byte.
class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{5, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection() { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void send(std::string_view text) { EXPECT_GE(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), 0); }
  // Reads until `count` times the text was seen, or the end.
  std::string read_until(std::string_view text, int count = 1) {
    while (occurrences(text) < count) {
      char buffer[4096];
      const auto bytes = ::recv(fd_, buffer, sizeof buffer, 0);
      if (bytes <= 0) break;
      seen_.append(buffer, static_cast<std::size_t>(bytes));
    }
    return seen_;
  }
  std::string read_all() { return read_until("\x01"); }

 private:
  int occurrences(std::string_view text) const {
    int found = 0;
    for (auto at = seen_.find(text); at != std::string::npos; at = seen_.find(text, at + 1)) ++found;
    return found;
  }
  int fd_;
  std::string seen_;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    options_.access = Access::open;
    options_.data_sources = &sources_;
    EXPECT_TRUE(store_.open({}));
    options_.feed = &feed_;
  }
  ~ServerTest() override { stop(); }

  void start() {
    pool_ = std::make_unique<ReadPool>(
        [this]() -> Result<std::unique_ptr<Reads>> {
          return std::make_unique<BreakingReads>(database_, breaks_, token_breaks_, before_read_);
        },
        2);
    server_ = std::make_unique<Server>(options_, inbox_, *pool_, metrics_, clock_,
                                       [this] { return Readiness{readiness_, std::chrono::milliseconds{1'234}}; });
    const auto port = server_->listen("127.0.0.1", 0);
    ASSERT_TRUE(port) << port.error().message;
    port_ = *port;
    thread_ = std::thread([this] { server_->run(); });
  }
  void stop() {
    if (!server_) return;
    server_->stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
    pool_.reset();
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  ClientResponse ask(std::string_view method, std::string_view target, std::string body = {},
                     const Client::Headers& headers = {}, std::string_view type = "application/json") {
    Client client(url());
    auto response = client.request(method, target, std::move(body), type, headers, std::chrono::seconds{10});
    EXPECT_TRUE(response) << (response ? "" : response.error().message);
    return response ? *std::move(response) : ClientResponse{};
  }
  static boost::json::value json(const ClientResponse& response) {
    boost::system::error_code error;
    auto value = boost::json::parse(response.body, error);
    EXPECT_FALSE(error) << response.body;
    return value;
  }
  static std::string text(const boost::json::value& object, std::string_view key) {
    const auto* value =
        object.is_object() ? object.as_object().if_contains({key.data(), key.size()}) : nullptr;
    return value != nullptr && value->is_string() ? std::string(value->as_string().c_str()) : "";
  }
  static std::string code(const ClientResponse& response) { return text(json(response), "code"); }

  // As the engine stores them.
  void commit(const WriteSet& writes) {
    const auto done = store_.commit(writes, ++commits_);
    EXPECT_TRUE(done) << done.error().message;
  }
  void commit(const runbook::Writes& writes) {
    WriteSet set;
    set.runbooks = writes;
    commit(set);
  }
  void add_jobs(std::vector<workflow::Job> jobs) {
    WriteSet writes;
    writes.jobs_new = std::move(jobs);
    commit(writes);
  }

  static workflow::Job job(const std::string& id, workflow::JobStatus status = workflow::JobStatus::running,
                           const std::string& tenant = "default") {
    workflow::Job made;
    made.job_id.value = id;
    made.tenant.value = tenant;
    made.workflow_id = "echo_test";
    made.workflow_version = 1;
    made.status = status;
    made.input_data.text = R"({"a":1})";
    return made;
  }
  // An engine to which everything is fine.
  void agree() {
    inbox_.answer([runbooks = RunbookAgrees{}](const Command& command) -> std::optional<Reply> {
      return std::visit(
          overloaded{
              [](const SubmitJob& c) -> Reply {
                auto made = job(c.job_id.value, workflow::JobStatus::pending, c.tenant.value);
                made.input_data = c.input_data;
                made.traceparent = c.traceparent;
                return JobReply{made, !c.idempotency_key || *c.idempotency_key != "again"};
              },
              [](const AwaitJob& c) -> Reply { return JobReply{job(c.job_id.value), false}; },
              [](const ChangeJob& c) -> Reply {
                const bool cancels = c.what == ChangeJob::What::cancel;
                return JobReply{job(c.job_id.value,
                                    cancels ? workflow::JobStatus::cancelled : workflow::JobStatus::running),
                                false};
              },
              [](const DecideApproval& c) -> Reply { return JobReply{job(c.job_id.value), false}; },
              [](const ReplayTask&) -> Reply { return JobReply{job("j"), false}; },
              [](const ExplainJob& c) -> Reply {
                ExplainReply reply{
                    .job = job(c.job_id.value), .reason = "no_worker", .summary = "nobody is there"};
                reply.waiting.push_back(
                    {.node_id = "echo", .reason = "no_worker", .message = "nobody is there"});
                return reply;
              },
              [](const ListWorkers&) -> Reply { return WorkersReply{{{.worker = "w1", .queues = {"q"}}}}; },
              [](const TaskNote& c) -> Reply {
                if (c.task_id == "old") return Refused{Refusal::stale_result, "an earlier lease", {}};
                return NoteReply{1};
              },
              [](const PublishWorkflow& c) -> Reply {
                return WorkflowReply{c.definition->workflow_id, 1, true};
              },
              [](const Poll& c) -> Reply {
                Handout task;
                task.task_id = "j_echo_0";
                task.job_id.value = "j";
                task.node_id = "echo";
                task.handler = "echo";
                task.params.text = R"({"x":1.0})";
                task.queue = c.queue;
                task.lease = "L1";
                if (c.queue == "pool-1") {
                  task.task_id = "init-7-retry-2";
                  task.runbook = RunbookJob{42, {runbook::RowType::init, 7}, "move", 3};
                }
                return PollReply{{task}};
              },
              [](const ReportResult& c) -> Reply {
                if (c.task_id == "old") return Refused{Refusal::stale_result, "an earlier lease", {}};
                return ResultReply{c.task_id == "twice", c.task_id == "step-9" ? "the step is over" : ""};
              },
              [](const Heartbeat&) -> Reply { return HeartbeatReply{Time{Duration{1000}}, {"t2"}}; },
              [](const ReturnTasks&) -> Reply { return ReturnReply{}; },
              runbooks,
          },
          command);
    });
  }

  // Until somebody listens to the feed.
  void wait_for_subscription() const {
    while (feed_.subscriptions() == 0) std::this_thread::yield();
  }

  // As if a commit had changed this.
  void publish(const std::vector<baton::Change>& changes) {
    CommitRecord record{.number = ++told_, .at = clock_.now()};
    for (const baton::Change& each : changes) record.changes.add(each);
    feed_.publish(std::move(record));
  }

  Feed feed_{"s1"};
  std::int64_t commits_ = 0;  // of the store
  std::int64_t told_ = 0;     // by the feed
  Options options_;
  ScriptedInbox inbox_;
  ScriptedSources sources_;
  store::MemoryDatabase database_;
  store::MemoryStore store_{database_};
  store::MemoryTokenAdmin tokens_{database_};
  std::atomic<int> breaks_{0};         // so many reads of a job fail
  std::atomic<int> token_breaks_{0};   // and of a token
  std::function<void()> before_read_;  // of a job; set before anything is asked
  support::WallClock clock_;
  metrics::Registry metrics_;
  std::atomic<Readiness::State> readiness_{Readiness::State::ready};
  std::uint16_t port_ = 0;

 private:
  std::unique_ptr<ReadPool> pool_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace baton::http
