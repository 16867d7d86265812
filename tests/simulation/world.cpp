#include "tests/simulation/world.hpp"

#include <algorithm>
#include <cstdio>

#include "store/journal/journal_store.hpp"
#include "tests/simulation/call_workload.hpp"
#include "tests/simulation/faulty_store.hpp"
#include "tests/simulation/message_workload.hpp"
#include "tests/simulation/planted_store.hpp"
#include "tests/simulation/runbook_side.hpp"
#include "tests/simulation/trace.hpp"
#include "tests/simulation/workflow_load.hpp"

namespace baton::simulation {

using namespace workflow;
using namespace std::chrono_literals;

namespace {

// Small numbers, so that every limit is met.
EngineOptions small_options() {
  EngineOptions options;
  options.writer.timers_max = 20;
  options.writer.handouts_max = 50;
  options.writer.queue_window = 3;
  engine::WorkflowsOptions& workflows = options.kinds.workflows;
  workflows.policy.items_chunk = 3;
  workflows.chunks_max = 2;
  workflows.expansions_max = 1;
  workflows.hot_bytes_max = 100'000;  // the smaller half of the jobs, a few at a time
  workflows.events_max = 40;
  workflows.steps_max = 20;
  workflows.steps_share = 10;
  return options;
}

}  // namespace

struct World::Engine {
  Engine(World& world, const EngineOptions& options)
      : store(std::make_unique<store::JournalStore>(std::make_unique<FaultyStore>(world), 1)),  // all documents are large
        writer(store, world.clock_, engine::make_kinds(options.kinds), options.writer) {}
  PlantedStore store;
  engine::Writer writer;
  std::vector<engine::Item> inbox;
};

// Answers travel back over the network. The engine may die before each of them leaves.
class World::ReplyTo final : public Waiter {
 public:
  enum class Way { network, within };
  ReplyTo(World& world, Command command, std::function<void(Reply)> on_reply, Way way = Way::network)
      : world_(world),
        command_(std::move(command)),
        on_reply_(std::move(on_reply)),
        way_(way),
        generation_(world.generation_) {
    if (std::holds_alternative<ReportResult>(command_)) world_.undecided_.emplace(this, world_.clock_.now());
  }
  // Whoever asks hears an answer, as long as the server lives.
  ~ReplyTo() override {
    world_.undecided_.erase(this);
    if (!answered_ && generation_ == world_.generation_) world_.forgotten_ = describe(command_);
  }
  [[nodiscard]] const ReportResult& report() const { return std::get<ReportResult>(command_); }

  void deliver(Reply reply) override {
    world_.expect(!answered_, "a command is answered once", "command " + std::to_string(command_.index()));
    answered_ = true;
    world_.undecided_.erase(this);
    if (generation_ != world_.generation_) return;
    world_.maybe_die();
    if (world_.trace_) world_.tell("  " + describe(command_) + " => " + describe(reply));
    for (const auto& load : world_.loads_) load->answered(command_, reply);
    const bool within = way_ == Way::within;
    // A commit in doubt is not what an answer rests on.
    const bool reads = !world_.is_away() && world_.random_.chance(0.1);
    const std::int64_t acknowledged = world_.database_.writers[{}].last_commit;
    if (!within && !world_.calm_ && world_.random_.chance(world_.faults_.message_lost)) return lost(reply);
    const Duration delay = within ? Duration{world_.random_.between(0, 8)} : world_.network_delay();
    world_.at(delay, [&world = world_, on_reply = on_reply_, reply, reads, acknowledged] {
      on_reply(reply);
      if (reads) world.read(acknowledged);
    });
  }

 private:
  // A server that notices that nobody took the tasks gives them back; often it does not notice.
  void lost(const Reply& reply) {
    const auto* poll = std::get_if<PollReply>(&reply);
    if (!poll || poll->jobs.empty() || !world_.random_.chance(0.3)) return;
    ReturnTasks back;
    for (const Handout& task : poll->jobs) {
      back.tasks.push_back({task.task_id, task.lease});
      for (const auto& load : world_.loads_) load->given_back({task.task_id, task.lease});
    }
    world_.send(back, [](const Reply&) {});
  }

  World& world_;
  const Command command_;
  const std::function<void(Reply)> on_reply_;
  const Way way_;
  const std::uint64_t generation_;
  bool answered_ = false;
};

// A lease that runs out, or a timeout, before a result of its holder is decided that came in time.
void World::check_overtaken(const WriteSet& writes) const {
  for (const Event& event : writes.events_new) {
    const bool given_back = event.event_data && event.event_data->text.contains("\"reason\"");
    if (given_back ||
        (event.event_type != EventType::node_timeout && event.event_type != EventType::node_lease_expired))
      continue;
    const auto name = parse_item_name(*event.node_id);
    auto stored = database_.nodes.find({event.job_id, no_item, *event.node_id});
    if (stored == database_.nodes.end() && name) stored = database_.nodes.find({event.job_id, name->item, *event.node_id});
    expect(stored != database_.nodes.end(), "a node is stored", *event.node_id);
    const NodeState& node = stored->second;
    for (const auto& [waiter, received] : undecided_) {
      const ReportResult& said = waiter->report();
      expect(node.task_id != said.task_id || !said.lease || *said.lease != lease_token(node) ||
                 !node.lease_until || received >= *node.lease_until,
             "no timer overtakes a message that was there before it", said.task_id);
    }
  }
}

Loads loads_of(std::uint64_t seed) {
  switch (seed % 20) {
    case 1: return {.workflows = true};
    case 3: return {.workflows = true, .calls = true};
    case 5: return {.calls = true};
    case 7: return {.runbooks = true, .calls = true};
    case 9: return {.runbooks = true};
    case 11:
    case 13: return {.workflows = true, .messages = true};
    case 15: return {.calls = true, .messages = true};
    case 17:
    case 19: return {.messages = true};
    default: return {.workflows = true, .runbooks = true, .calls = true, .messages = true};
  }
}

World::World(std::uint64_t seed) : random_(seed), has_(loads_of(seed)) {
  // Some seeds are kind, some are cruel in one way, some in all.
  const auto draw = [&](double most) {
    return random_.chance(0.5) ? 0.0 : most * static_cast<double>(random_.below(1'000)) / 1'000.0;
  };
  faults_ = {.message_lost = draw(0.2),
             .message_repeated = draw(0.2),
             .commit_fails = draw(0.05),
             .commit_unknown = draw(0.1),
             .store_full = draw(0.1),
             .load_fails = draw(0.03),
             .row_held = draw(0.03),
             .taken_over = draw(0.003),
             .engine_dies = draw(0.02),
             .machine_dies = draw(1),
             .worker_dies = draw(0.15),
             .worker_stalls = draw(0.2),
             .delay_max = Duration{random_.between(1, 400)},
             .refuses_rows = random_.chance(0.2)};
  if (has_.workflows) loads_.push_back(std::make_unique<WorkflowLoad>(*this));
  if (has_.runbooks) loads_.push_back(std::make_unique<RunbookSide>(*this));
  if (has_.calls) loads_.push_back(std::make_unique<CallWorkload>(*this));
  if (has_.messages) loads_.push_back(std::make_unique<MessageWorkload>(*this));
}

// Numbers are given once.
std::size_t World::messages() const {
  std::size_t all = 0;
  for (const auto& [id, row] : database_.bus.counters) all += id == 0 ? 0 : static_cast<std::size_t>(row.last_sequence_number);
  return all;
}

// What the engine had begun to store goes with it.
World::~World() { ++generation_; }

void World::tell(const std::string& what) const {
  std::printf("%s %s\n", to_iso(clock_.time).c_str(), what.c_str());
}

void World::at(Duration after, std::function<void()> what) {
  agenda_.emplace(clock_.time + after, std::move(what));
}

// Of a worker. Where days go by, not every second of them is looked at.
Duration World::poll_patience() {
  const bool long_poll = has_.runbooks && (calm_ || random_.chance(0.5));
  return Duration{long_poll ? random_.between(0, 20'000'000) : random_.between(0, 20'000)};
}

Duration World::network_delay() { return Duration{random_.between(0, faults_.delay_max.count())}; }

void World::send(Command command, std::function<void(Reply)> on_reply) {
  const int copies = calm_                                      ? 1
                     : random_.chance(faults_.message_lost)     ? 0
                     : random_.chance(faults_.message_repeated) ? 2
                                                                : 1;
  for (int i = 0; i < copies; ++i)
    at(network_delay(), [this, command, on_reply] { arrive(command, on_reply); });
}

void World::arrive(const Command& command, const std::function<void(Reply)>& on_reply) {
  if (!engine_) return;  // connection refused
  Command received = command;
  // The edge makes the id of a job, for every request anew: a repeated request is not a repeated id.
  if (auto* submit = std::get_if<SubmitJob>(&received))
    submit->job_id.value = uuid7(clock_.now(), random_.next(), random_.next());
  for (const auto& load : loads_) load->arrived(received);
  if (trace_) tell(describe(received));
  engine_->inbox.push_back({received, std::make_shared<ReplyTo>(*this, received, on_reply), clock_.now()});
  schedule_engine();
}

void World::tell_engine(Command command, std::function<void(Reply)> on_reply) {
  if (!engine_) return;
  if (trace_) tell(describe(command));
  auto waiter = std::make_shared<ReplyTo>(*this, command, std::move(on_reply), ReplyTo::Way::within);
  engine_->inbox.push_back({std::move(command), std::move(waiter)});
  schedule_engine();
}

// What is counted in days is not checked to the second, so nobody sets the clock there.
void World::set_clock(Duration by) {
  if (calm_ || has_.runbooks) return;
  clock_.set_by += by;
  clock_.set_back += std::max(-by, Duration{});
  scheduled_.reset();  // the engine looks at the new time
  schedule_engine();
}

EngineOptions World::engine_options() {
  EngineOptions options = small_options();
  options.writer.beside_rows = random_.below(40);  // few come at a time
  for (const auto& load : loads_) load->set_options(options);
  options.writer.feed = &feed_->feed();
  options.writer.followed = followed_.get();
  return options;
}

void World::start_engine() {
  ++generation_;
  taken_over_ = false;
  feed_ = std::make_unique<FeedWatch>();
  begin_following();
  engine_ = std::make_unique<Engine>(*this, engine_options());
  following_ended_ = false;
  engine_->store.on_ended([this] {
    following_ended_ = true;
    schedule_engine();
  });
  try {
    const bool opened = engine_->writer.open().has_value();
    check_touched();
    check_feed();
    if (!opened) return kill_engine();
  } catch (const EngineDies&) {
    return kill_engine();
  }
  for (const auto& load : loads_) load->engine_started();
  scheduled_.reset();
  schedule_engine();
}

void World::kill_engine() {
  if (trace_) tell("the engine dies");
  check_touched();
  ++generation_;
  engine_.reset();
  if (!calm_ && random_.chance(faults_.machine_dies)) machine_dies();
  for (const auto& load : loads_) load->engine_died();
  ++restarts_;
  scheduled_.reset();
  at(Duration{random_.between(1, 3'000)}, [this] { start_engine(); });
}

void World::check_feed() {
  if (!engine_->writer.away()) feed_->check();
}

bool World::is_away() const { return !engine_ || engine_->writer.away(); }

void World::maybe_die() {
  if (calm_ || !random_.chance(faults_.engine_dies)) return;
  ++generation_;  // nobody hears from it any more
  throw EngineDies{};
}

void World::schedule_engine() {
  if (!engine_) return;
  std::optional<Time> when;
  if (!engine_->inbox.empty() || engine_->writer.away() || following_ended_)
    when = clock_.time + Duration{random_.between(0, 5)};
  else if (const auto wake = engine_->writer.next_wake())
    when = std::max(*wake - clock_.set_by, clock_.time);
  if (!when || (scheduled_ && *scheduled_ <= *when)) return;
  scheduled_ = when;
  agenda_.emplace(*when, [this, generation = generation_, t = *when] {
    if (generation != generation_ || scheduled_ != t) return;
    scheduled_.reset();
    engine_step();
  });
}

void World::engine_step() {
  try {
    engine::Writer& writer = engine_->writer;
    following_ended_ = false;
    if (writer.away()) {
      if (random_.chance(0.2)) writer.abandon_held();
      if (random_.chance(0.3)) writer.expire_while_away();
      expect(writer.open().has_value() || writer.away(), "a healthy store opens", "");
    } else {
      writer.run(std::exchange(engine_->inbox, {}));
    }
    check_touched();
    check_feed();
    expect(forgotten_.empty(), "a command is answered", forgotten_);
    expect(writer.fatal().has_value() == taken_over_, "a writer stops when it was replaced, and only then", "");
    if (taken_over_) return kill_engine();
  } catch (const EngineDies&) {
    return kill_engine();
  }
  schedule_engine();
}

void World::tidy_up() {
  for (const auto& load : loads_) load->tidy_up();
  at(has_.runbooks ? Duration{20min} : Duration{30s}, [this] { tidy_up(); });
}

bool World::at_rest() const {
  return std::ranges::all_of(loads_, [](const auto& load) { return load->at_rest(); });
}

void World::check_touched() {
  for (const auto& load : loads_) load->check_touched();
}

void World::check_all() {
  for (const auto& load : loads_) load->check_all();
}

void World::expect(bool truth, const std::string& what, const std::string& about) {
  if (!truth) throw Violation{what + (about.empty() ? "" : " (" + about + ")")};
}

void World::run() {
  start_engine();
  tidy_up();
  Duration storm{}, calm{};
  for (const auto& load : loads_) {
    load->start();
    storm = std::max(storm, load->storm_lasts());
    calm = std::max(calm, load->calm_lasts());
  }
  storm_ends_ = clock_.time + storm;
  const Time all_ends = storm_ends_ + calm;
  while (!agenda_.empty() && clock_.time < all_ends) {
    const auto next = agenda_.begin();
    clock_.time = std::max(clock_.time, next->first);
    const auto what = std::move(next->second);
    agenda_.erase(next);
    if (clock_.time >= storm_ends_) calm_ = true;
    if ((has_.calls || has_.messages) && !calm_ && random_.chance(0.003)) set_clock(Duration{random_.between(-20'000, 60'000)});
    what();
    check_behind();
    expect(++steps_ < 400'000, "the world comes to rest", "");
    const bool look = has_.runbooks ? steps_ % 64 == 0 : steps_ % 512 == 0;
    if (calm_ && look && at_rest() && clock_.time > storm_ends_ + 2min) break;
  }
  check_all();
}

}  // namespace baton::simulation
