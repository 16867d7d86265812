#include "tests/simulation/runbook_side.hpp"

#include <algorithm>

#include "core/runbook/machine/holds.hpp"
#include "tests/simulation/runbook_actors.hpp"

namespace baton::simulation {

using namespace std::chrono_literals;
using runbook::Batch;

RunbookSide::RunbookSide(World& world)
    : world_(world),
      scheduler_(!world.random_.chance(0.3)),
      chunk_members_(static_cast<std::int32_t>(world.random_.between(2, 3))),
      watch_(world.database_, world.clock_, scheduler_) {
  const auto workers = random().between(2, 4);
  for (int i = 0; i < workers; ++i)
    workers_.push_back(std::make_unique<PoolWorker>(*this, i, i % 2 == 0 ? "pool-1" : "pool-2",
                                                    i < 2 || random().chance(0.6)));
  const auto some_text = [&]() -> const RunbookTexts& { return runbook_texts[random().below(runbook_texts.size())]; };
  if (!scheduler_) outsider_ = std::make_unique<Outsider>(*this, some_text());
  const auto planners = scheduler_ ? random().between(1, 2) : random().between(0, 1);
  for (int i = 0; i < planners; ++i) planners_.push_back(std::make_unique<Planner>(*this, some_text()));
  person_ = std::make_unique<Person>(*this);
}

RunbookSide::~RunbookSide() = default;

void RunbookSide::set_options(EngineOptions& options) {
  engine::RunbooksOptions& runbooks = options.kinds.runbooks;
  runbooks.policy.scheduler = scheduler_;
  runbooks.policy.deliveries_max = 5;
  runbooks.policy.chunk_members = chunk_members_;
  runbooks.policy.chunk_rows = 7;
  runbooks.policy.chunk_bytes = 120;  // one member that is given a step, or two
  runbooks.policy.members_named = 2;
  runbooks.policy.batch_rows = 10;
  runbooks.policy.batch_bytes = 200;
  runbooks.walks_max = 1;
  runbooks.ids_block = 5;
  options.writer.timers_max = 4;
}

void RunbookSide::start() {
  for (auto& worker : workers_) worker->start();
  for (auto& planner : planners_) planner->start();
  if (outsider_) outsider_->start();
  if (random().chance(0.8)) person_->start();
}

void RunbookSide::send_surely(const Command& command, const std::function<void(Reply)>& on_reply) {
  auto answered = std::make_shared<bool>(false);
  send(command, [answered, on_reply](const Reply& reply) {
    const auto* refused = std::get_if<Refused>(&reply);
    if (*answered || (refused && (refused->refusal == Refusal::store_unavailable ||
                                  refused->refusal == Refusal::store_full)))
      return;
    *answered = true;
    on_reply(reply);
  });
  at(within(5s, 2min), [this, answered, command, on_reply] {
    if (!*answered) send_surely(command, on_reply);
  });
}

// Another program may write between the load and the commit of a batch.
void RunbookSide::before_commit(const WriteSet& writes) {
  meddled_ = outsider_ && !calm() && random().chance(0.05) && outsider_->meddle();
  if (outsider_ && !calm() && random().chance(0.3)) outsider_->refresh(writes.runbooks);
  watch_.before_commit(writes.runbooks);
}

runbook::DataRow RunbookSide::member_data(const std::string& key) {
  static constexpr std::array<std::string_view, 6> kinds{"Work", "Flaky", "Work", "Doomed", "Work", "Poison"};
  std::string data = "{\"Key\":" + quoted(key) + ",\"TargetId\":\"none\",\"Aliases\":[\"a\",\"b\"],\"Kind\":" +
                     quoted(kinds[random().below(kinds.size())]);
  if (random().chance(0.9)) data += ",\"Maybe\":\"yes\"";
  return {key, std::nullopt, Json{data + "}"}};
}

void RunbookSide::write_data(const std::string& table, const runbook::DataRow& row) {
  const auto done = rows().write_data({.table = table,
                                       .columns = {"Key", "TargetId", "Aliases", "Kind", "Maybe"},
                                       .rows = {row},
                                       .seen_at = now()});
  ENSURE(done.has_value());
}

std::shared_ptr<const runbook::Definition> RunbookSide::parsed(std::string_view text) {
  auto& known = parsed_[text];
  if (!known) known = runbook::parse(text).definition;
  ENSURE(known);
  return known;
}

const Batch* RunbookSide::any_batch(bool ended) {
  std::vector<const Batch*> found;
  for (const auto& [id, batch] : rows().batches)
    if (is_terminal(batch.status) == ended) found.push_back(&batch);
  return found.empty() ? nullptr : found[random().below(found.size())];
}

bool RunbookSide::at_rest() const {
  const store::memory::RunbookTables& db = world_.database_.runbooks;
  const auto over = [](const auto& table) {
    return std::ranges::all_of(table, [](const auto& entry) { return is_terminal(entry.second.status); });
  };
  const auto is_ours = [](const baton::Timer& timer) { return timer.subject.type != Subject::Type::job; };
  return std::ranges::none_of(world_.database_.timers, is_ours) && over(db.batches) && over(db.phases) && over(db.steps) && over(db.inits) &&
         over(db.cleanups);
}

void RunbookSide::tidy_up() {
  using What = ChangeBatch::What;
  if (!calm()) return;
  for (const auto& [id, batch] : rows().batches) {
    if (is_terminal(batch.status)) continue;
    if (batch.importing) send(StartBatch{id});
    if (batch.paused_at) send(ChangeBatch{.batch_id = id, .what = What::resume, .by = "janitor"});
    for (const auto& [hold_id, hold] : rows().holds)
      if (hold.batch_id == id && hold.status == runbook::HoldStatus::open)
        send(AnswerHold{.batch_id = id, .hold_id = hold_id, .answer = std::string(answers_of(hold.kind).front().word), .by = "janitor"});
    if (batch.is_manual) send(ChangeBatch{.batch_id = id, .what = What::advance, .by = "janitor"});
  }
}

}  // namespace baton::simulation
