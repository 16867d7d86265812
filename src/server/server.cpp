#include "server/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "base/ids.hpp"
#include "base/metrics.hpp"
#include "bus/broker/broker.hpp"
#include "bus/endpoint.hpp"
#include "caller/caller.hpp"
#include "caller/dispatcher.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/service.hpp"
#include "http/admin/admin_api.hpp"
#include "http/wire/read_pool.hpp"
#include "http/wire/server.hpp"
#include "ports/ask.hpp"
#include "ports/feed.hpp"
#include "scheduler/scheduler.hpp"
#include "server/data_sources.hpp"
#include "server/definition_files.hpp"
#include "server/partition.hpp"
#include "server/system_clock.hpp"
#include "server/task_queues.hpp"
#include "store/open.hpp"
#include "worker/builtin.hpp"

namespace baton::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view sqlite_scheme = "sqlite:";

Result<> make_directory_of(const std::string& store) {
  if (!store.starts_with(sqlite_scheme)) return {};
  const fs::path directory = fs::path(store.substr(sqlite_scheme.size())).parent_path();
  std::error_code error;
  if (!directory.empty()) fs::create_directories(directory, error);
  if (error)
    return fail(Code::unavailable,
                fmt::format("cannot make the directory {}: {}", directory.string(), error.message()));
  return {};
}

Result<std::vector<DefinitionFile>> checked_definitions(const fs::path& directory) {
  if (directory.empty()) return {};
  TRY_ASSIGN(auto files, read_definitions(directory));
  const auto broken =
      std::ranges::count_if(files, [](const DefinitionFile& file) { return !file.definition; });
  if (broken > 0)
    return fail(Code::invalid, fmt::format("{}{} of {} definitions in {} cannot be published", render(files),
                                           broken, files.size(), directory.string()));
  for (const DefinitionFile& file : files)
    for (const Diagnostic& each : file.diagnostics) spdlog::warn("{}", baton::render(file.path, each));
  return files;
}

// Revoked tokens count: ending the last one must not open the door to everybody.
Result<Access> access_for(const Config& config) {
  TRY_ASSIGN(const auto reads, store::make_reads(config.store));
  TRY_ASSIGN(const auto tokens, reads->tokens());
  if (!tokens.empty()) return Access::required;
  std::vector<const Listen*> exposed;
  for (const Listen* each : {&config.listen, config.amqp ? &*config.amqp : nullptr, config.amqp_admin ? &*config.amqp_admin : nullptr})
    if (each && !each->is_loopback()) exposed.push_back(each);
  if (exposed.empty()) return Access::open;
  if (config.insecure) {
    for (const Listen* each : exposed)
      spdlog::warn("everybody who can reach {}:{} may do everything: there is no token, and insecure is on", each->host, each->port);
    return Access::open;
  }
  const bool in_data = config.store == sqlite_url(config.data);
  return fail(
      Code::invalid,
      fmt::format(
          "refusing to listen on {} without any access token, because other hosts could reach it. Make "
          "one with\n  baton token create --role admin {} {}\nor listen on 127.0.0.1, or say "
          "--insecure if the network itself is trusted.",
          exposed.front()->host, in_data ? "--data" : "--store",
          in_data ? config.data.string() : without_password(config.store)));
}

}  // namespace

struct Server::State {
  State(Config config_in, std::function<void(const Error&)> on_fatal_in) : config(std::move(config_in)), on_fatal(std::move(on_fatal_in)) {
    std::vector<std::string> published = config.bus_pools;
    published.insert(published.end(), config.bus_queues.begin(), config.bus_queues.end());
    if (config.bus) broker_state.emplace(config.bus->shown(), std::move(published), clock.now());
  }

  Result<> start_engine();
  engine::KindsOptions kinds_options();
  Result<> publish_all(const std::vector<DefinitionFile>& files);
  Result<> end_imports();
  Result<> start_http(Access access);
  Result<> start_bus(Access access);
  Result<> start_bus_admin(Access access);
  void start_broker();
  Result<> start_calls();
  void stop_calls();
  // What comes in from outside.
  Inbox& inbox() { return reserving ? static_cast<Inbox&>(*reserving) : *engine; }
  void start_scheduler();
  void wake_scheduler();  // any thread
  void stop_scheduler();

  const Config config;
  std::function<void(const Error&)> on_fatal;
  SystemClock clock;
  metrics::Registry metrics;
  Followed followed;
  Feed feed{fmt::format("{:x}", std::uint64_t{std::random_device{}()} << 32 | std::random_device{}())};
  std::optional<BrokerState> broker_state;  // of the external broker, if there is one
  // In the order of their dependencies; destroyed in the reverse one.
  std::unique_ptr<engine::Service> engine;
  std::unique_ptr<DataSources> sources;
  std::unique_ptr<caller::HttpCaller> caller;
  std::unique_ptr<caller::ReservingInbox> reserving;  // in front of the engine, if calls are made
  TaskQueues task_queues{[this](Tenant tenant, TaskQueues::Names names, std::function<void(Result<TaskQueues::Names>)> found) {
                           reads->run([tenant = std::move(tenant), names = std::move(names)](Reads& from) { return task_queues_among(from, tenant, names); },
                                      std::move(found), http::ReadPool::Of::others);
                         },
                         clock};
  std::unique_ptr<http::ReadPool> reads;
  std::unique_ptr<http::Server> http;
  std::unique_ptr<bus::Endpoint> bus;
  std::unique_ptr<http::Server> bus_admin;
  std::unique_ptr<bus::Broker> broker;
  std::unique_ptr<worker::Builtin> builtin;
  std::mutex calls_mutex;
  std::unique_ptr<caller::Dispatcher> dispatcher;  // under the mutex
  std::mutex scheduler_mutex;
  std::unique_ptr<scheduler::Scheduler> scheduler;  // under the mutex
  std::thread io, bus_io, bus_admin_io, broker_io;
  std::uint16_t port = 0, amqp_port = 0, amqp_admin_port = 0;
};

engine::KindsOptions Server::State::kinds_options() {
  engine::KindsOptions kinds;
  kinds.workflows.policy.builtin = config.builtin;
  for (const std::string& name : config.env)
    if (const char* value = std::getenv(name.c_str())) kinds.workflows.policy.environment[name] = value;
  if (broker_state)
    kinds.workflows.trouble_of_queue = [this](const Tenant& tenant, const std::string& queue) {
      return tenant.value == "default" ? broker_state->trouble_of(queue) : std::nullopt;
    };
  kinds.runbooks.policy.scheduler = config.scheduler;
  kinds.runbooks.adopt_jobs = config.adopt;
  kinds.runbooks.changed = [this] { wake_scheduler(); };
  kinds.messages.events_topic = config.bus_events_topic;
  kinds.messages.jobs_topic = config.bus_jobs_topic;
  kinds.messages.results_topic = config.bus_results_topic;
  kinds.messages.events_subscription = config.bus_events_subscription;
  kinds.messages.results_subscription = config.bus_results_subscription;
  kinds.calls.scheduled = [this](std::vector<DueCall> calls) {
    const std::scoped_lock lock(calls_mutex);
    if (dispatcher) dispatcher->scheduled(std::move(calls));
  };
  return kinds;
}

Result<> Server::State::start_engine() {
  TRY(make_directory_of(config.store));
  if (config.without_log) spdlog::warn("without_log is on, which is for one start: a log that is missing is not missed");
  using store::MissingLog;
  TRY_ASSIGN(auto store, store::make_store(config.store, config.without_log ? MissingLog::accept : MissingLog::refuse));
  engine::Options options;
  options.partition = only_partition;
  options.feed = &feed;
  options.followed = &followed;
  options.inbox_max = config.inbox_max;
  options.short_lease = std::chrono::seconds{config.lease_seconds};
  options.slow_after = config.turn_slow;
  options.stalled_after = config.turn_stalled;
  engine = std::make_unique<engine::Service>(
      std::move(store), clock, engine::make_kinds(kinds_options(), &metrics), options, metrics,
      engine::Hooks{
          .slow_turn =
              [](const engine::SlowTurn& turn) {
                spdlog::warn("a turn of the engine took {} ms: {}", turn.took.count(), turn.cause);
              },
          .fatal = on_fatal,
          .store_busy =
              [](const Error& error) { spdlog::warn("waiting for up to 30 seconds, to start: {}", error.message); },
          .store_lost = [](const Error& error) { spdlog::error("the store is lost: {}", error.message); },
          .store_back = [] { spdlog::info("the store is back"); },
          .unreadable = [](const std::string& what) { spdlog::warn("{}", what); }});
  return engine->start();
}

Result<> Server::State::start_calls() {
  if (!config.calls) return {};
  caller::Options options;
  TRY_ASSIGN(options.egress, caller::Egress::parse(config.egress_allow, config.egress_deny));
  options.ca_file = config.calls_ca;
  options.connect_timeout = std::chrono::seconds{config.calls_connect_seconds};
  if (config.calls_first_byte_seconds > 0)
    options.first_byte_timeout = std::chrono::seconds{config.calls_first_byte_seconds};
  TRY_ASSIGN(caller, caller::HttpCaller::start(std::move(options)));
  std::random_device random;  // no two servers have the same name, though the clock be set
  const std::string name = "server-" + uuid7(clock.now(), random(), random());
  const auto places = std::make_shared<caller::Places>(
      caller::Places::Limits{.places_max = config.calls_max, .per_origin_max = config.calls_per_origin},
      name);
  reserving = std::make_unique<caller::ReservingInbox>(*engine, clock, places);
  auto made = std::make_unique<caller::Dispatcher>(
      *engine, clock, *caller, [this] { return store::make_reads(config.store, followed, only_partition); }, followed, metrics,
      places,
      caller::DispatchOptions{.patience = std::chrono::seconds{config.calls_drain_seconds},
                              .name = name,
                              .log = [](const std::string& what) { spdlog::warn("{}", what); }});
  const std::scoped_lock lock(calls_mutex);
  dispatcher = std::move(made);
  dispatcher->start();
  return {};
}

void Server::State::stop_calls() {
  caller::Dispatcher* running = nullptr;
  {
    const std::scoped_lock lock(calls_mutex);
    running = dispatcher.get();
  }
  if (running) running->stop();  // calls that a commit has begun meanwhile still reach it
  if (caller) caller->stop();
  const std::scoped_lock lock(calls_mutex);
  dispatcher.reset();
}

void Server::State::start_scheduler() {
  if (!config.scheduler) return;
  const auto log = [](const std::string& runbook, const std::string& message, bool is_error) {
    spdlog::log(is_error ? spdlog::level::warn : spdlog::level::info, "runbook {}: {}", runbook, message);
  };
  auto made = std::make_unique<scheduler::Scheduler>(
      *engine, [url = config.store] { return store::make_reads(url); }, *sources, clock, metrics, log);
  made->start();
  const std::scoped_lock lock(scheduler_mutex);
  scheduler = std::move(made);
}

void Server::State::wake_scheduler() {
  const std::scoped_lock lock(scheduler_mutex);
  if (scheduler) scheduler->wake();
}

void Server::State::stop_scheduler() {
  std::unique_ptr<scheduler::Scheduler> ended;
  {
    const std::scoped_lock lock(scheduler_mutex);
    ended = std::move(scheduler);
  }
  if (ended) ended->stop();
}

Result<> Server::State::publish_all(const std::vector<DefinitionFile>& files) {
  TRY_ASSIGN(const auto published, publish(*engine, workflow::Tenant{"default"}, files));
  for (const WorkflowReply& each : published)
    spdlog::info("workflow {} version {} {}", each.workflow_id, each.version,
                 each.created ? "is published" : "was published before");
  return {};
}

// Before anybody can begin another import: of what an earlier process left half-imported, batches of a source
// are completed by the scheduler's next look; what somebody had sent is cancelled, because nobody will send the
// rest.
Result<> Server::State::end_imports() {
  TRY_ASSIGN(const auto store_reads, store::make_reads(config.store));
  TRY_ASSIGN(const auto half, store_reads->importing());
  for (const BatchSummary& each : half) {
    if (!each.batch.is_manual) {
      if (!config.scheduler)
        spdlog::warn(
            "batch {} of runbook {} has not all its members: it waits until the scheduler is on again, or it is "
            "cancelled",
            each.batch.id, each.runbook_name);
      continue;
    }
    const Reply reply = ask(*engine, ChangeBatch{.batch_id = each.batch.id,
                                                 .what = ChangeBatch::What::cancel,
                                                 .phase = "",
                                                 .by = "",
                                                 .reason = "the server stopped while its members were imported"})
                            .get();
    if (const auto* refused = std::get_if<Refused>(&reply))
      spdlog::warn("batch {} is half-imported and cannot be cancelled: {}", each.batch.id, refused->message);
  }
  return {};
}

Result<> Server::State::start_http(Access access) {
  const unsigned readers = std::clamp(std::thread::hardware_concurrency(), 2U, 8U);
  reads = std::make_unique<http::ReadPool>(
      [this] { return store::make_reads(config.store, followed, only_partition); }, readers, &followed);
  http::Options options;
  options.access = access;
  options.data_sources = sources.get();
  options.broker = broker_state ? &*broker_state : nullptr;
  options.feed = &feed;
  options.loopback = config.listen.is_loopback();
  options.body_bytes_max = config.body_max;
  options.connections_max = config.connections_max;
  http = std::make_unique<http::Server>(options, inbox(), *reads, metrics, clock,
                                        [engine = engine.get()] { return engine->readiness(); });
  TRY_ASSIGN(port, http->listen(config.listen.host, config.listen.port));
  io = std::thread([this] { http->run(); });
  return {};
}

Result<> Server::State::start_bus(Access access) {
  if (!config.amqp) return {};
  bus::EndpointOptions options;
  options.names = {config.bus_events_topic, config.bus_jobs_topic, config.bus_results_topic, config.bus_events_subscription,
                   config.bus_results_subscription};
  options.auto_pools = config.bus_auto_pools;
  options.access = access;
  options.connections_max = config.connections_max;
  options.lock_time = std::chrono::seconds{config.bus_lock_seconds};
  const auto look_up = [this](auto&& find, bus::FoundToken found) {
    reads->run(std::forward<decltype(find)>(find), std::move(found), http::ReadPool::Of::others);
  };
  options.tokens.by_hash = [look_up](std::string hash, bus::FoundToken found) {
    look_up([hash](Reads& from) { return from.token_by_hash(hash); }, std::move(found));
  };
  options.tokens.by_id = [look_up](std::string id, bus::FoundToken found) {
    look_up([id](Reads& from) { return from.token_by_id(id); }, std::move(found));
  };
  options.is_task_queue = [this](const Tenant& tenant, const std::string& queue, TaskQueues::Found found) { task_queues.ask(tenant, queue, std::move(found)); };
  options.find_job = [this, lock_time = options.lock_time](const Tenant& tenant, const std::string& queue, const bus::LockToken& token, auto found) {
    reads->run([=, unkept_until = clock.now() + lock_time](Reads& from) { return bus::find_job(from, tenant, queue, token, unkept_until); }, std::move(found));
  };
  bus = std::make_unique<bus::Endpoint>(std::move(options), inbox(), metrics, clock);
  TRY_ASSIGN(amqp_port, bus->listen(config.amqp->host, config.amqp->port));
  bus_io = std::thread([this] { bus->run(); });
  return {};
}

Result<> Server::State::start_bus_admin(Access access) {
  if (!config.amqp_admin) return {};
  http::Options options;
  options.api = &http::admin_api();
  options.access = access;
  options.loopback = config.amqp_admin->is_loopback();
  options.body_bytes_max = 256 * 1024;  // a description with its rules
  options.connections_max = config.connections_max;
  bus_admin = std::make_unique<http::Server>(options, inbox(), *reads, metrics, clock, [engine = engine.get()] { return engine->readiness(); });
  TRY_ASSIGN(amqp_admin_port, bus_admin->listen(config.amqp_admin->host, config.amqp_admin->port));
  bus_admin_io = std::thread([this] { bus_admin->run(); });
  return {};
}

void Server::State::start_broker() {
  if (!config.bus) return;
  broker = std::make_unique<bus::Broker>(
      bus::BrokerOptions{.address = *config.bus,
                         .names = {config.bus_events_topic, config.bus_jobs_topic, config.bus_results_topic},
                         .events_subscription = config.bus_events_subscription,
                         .results_subscription = config.bus_results_subscription,
                         .pools = config.bus_pools,
                         .queues = config.bus_queues,
                         .trusted = config.bus_ca,
                         .message_bytes_max = config.body_max,
                         .lock_time = std::chrono::seconds{config.bus_lock_seconds}},
      inbox(), metrics, clock, *broker_state);
  broker_io = std::thread([this] { broker->run(); });
}

Server::Server(Config config, std::function<void(const Error&)> on_fatal)
    : state_(std::make_unique<State>(std::move(config), std::move(on_fatal))) {}

Server::~Server() { stop(); }

Result<> Server::start() {
  State& s = *state_;
  const auto started = [&]() -> Result<> {
    // Definitions first: a wrong one is found before anything is touched.
    TRY_ASSIGN(const auto files, checked_definitions(s.config.definitions));
    TRY(s.start_engine());
    TRY_ASSIGN(const auto access, access_for(s.config));
    TRY(s.publish_all(files));
    s.sources = open_data_sources(s.config);
    TRY(s.end_imports());
    TRY(s.start_calls());
    // Baton's own topics are made before anybody can look for them; nobody waits for that.
    (void)ask(*s.engine, FindEntity{.key = {Tenant{"default"}, s.config.bus_events_topic}, .is_attach = true});
    TRY(s.start_http(access));
    TRY(s.start_bus(access));
    TRY(s.start_bus_admin(access));
    s.start_broker();
    s.start_scheduler();
    if (s.config.builtin) {
      s.builtin = std::make_unique<worker::Builtin>(
          *s.engine, s.clock,
          // Its results must fit the inbox together.
          worker::BuiltinOptions{.batch_max = static_cast<std::uint32_t>(
                                     std::clamp<std::size_t>(s.config.inbox_max / 8, 1, 256))});
      s.builtin->start();
    }
    spdlog::info("ready at {}, store {}, {}", url(), without_password(s.config.store),
                 access == Access::open ? "open: no token is needed" : "every request needs a token");
    return {};
  }();
  if (!started) stop();
  return started;
}

void Server::stop() {
  State& s = *state_;
  // The scheduler first, whose work waits until the next start, and with it the sources, which previews wait for
  // too. Then the edge, while there is an engine to answer what is in flight, which must not wait for a store that is
  // away; then the worker; then the engine, which answers the rest.
  if (s.engine) s.engine->begin_stop();
  s.stop_scheduler();
  if (s.sources) s.sources->interrupt();
  if (s.http) s.http->stop();
  if (s.bus) s.bus->stop();
  if (s.bus_admin) s.bus_admin->stop();
  if (s.broker) s.broker->stop();
  if (s.io.joinable()) s.io.join();
  if (s.bus_io.joinable()) s.bus_io.join();
  if (s.bus_admin_io.joinable()) s.bus_admin_io.join();
  if (s.broker_io.joinable()) s.broker_io.join();
  // Tasks handed out for clients who are gone by now come back before the engine takes nothing more. A store
  // that is away has no part in this, so it is not waited for long.
  if (s.engine && s.engine->is_open()) (void)ask(*s.engine, ReturnTasks{}).wait_for(std::chrono::seconds{2});
  s.stop_calls();
  if (s.builtin) s.builtin->stop();
  if (s.engine) s.engine->stop();
}

namespace {

std::string address(const std::string& host, std::uint16_t port) {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

std::string Server::url() const { return "http://" + address(state_->config.listen.host, state_->port); }

std::string Server::amqp() const {
  const auto& listen = state_->config.amqp;
  return listen ? address(listen->host, state_->amqp_port) : "";
}

std::string Server::amqp_admin() const {
  const auto& listen = state_->config.amqp_admin;
  return listen ? address(listen->host, state_->amqp_admin_port) : "";
}

}  // namespace baton::server
