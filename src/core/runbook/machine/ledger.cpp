#include "core/runbook/machine/ledger.hpp"

#include <algorithm>

#include <boost/pfr/core.hpp>

namespace baton::runbook {
namespace {

std::string_view table_name(const Runbook&) { return "runbooks"; }
std::string_view table_name(const Batch&) { return "batches"; }
std::string_view table_name(const Member&) { return "batch_members"; }
std::string_view table_name(const PhaseExecution&) { return "phase_executions"; }
std::string_view table_name(const StepExecution&) { return "step_executions"; }
std::string_view table_name(const InitExecution&) { return "init_executions"; }
std::string_view table_name(const CleanupExecution&) { return "cleanup_executions"; }
std::string_view table_name(const Hold&) { return "holds"; }

template <class Row>
Slot<Row>* readable(Slot<Row>& slot) {
  if (slot.unreadable)
    throw Unreadable{"row " + std::to_string(slot.row.id) + " of table " + std::string(table_name(slot.row)) +
                     " holds something that this version cannot read"};
  return &slot;
}

template <class Row>
Slot<Row>* find(std::unordered_map<std::int64_t, Slot<Row>>& rows, std::int64_t id) {
  const auto it = rows.find(id);
  return it == rows.end() ? nullptr : readable(it->second);
}

// Those that fit, by id.
template <class Row, class Fits>
std::vector<Slot<Row>*> filter(std::unordered_map<std::int64_t, Slot<Row>>& rows, Fits&& fits) {
  std::vector<Slot<Row>*> found;
  for (auto& [id, slot] : rows)
    if (fits(slot.row)) found.push_back(readable(slot));
  std::ranges::sort(found, {}, [](const Slot<Row>* slot) { return slot->row.id; });
  return found;
}

template <class Row>
void insert(std::unordered_map<std::int64_t, Slot<Row>>& rows, std::vector<Row>& loaded, Table table,
            const std::set<std::pair<Table, std::int64_t>>& unreadable) {
  for (Row& row : loaded) {
    const auto [at, is_first] = rows.try_emplace(row.id);
    if (!is_first) continue;
    Slot<Row>& slot = at->second;
    slot.unreadable = !unreadable.empty() && unreadable.contains({table, row.id});
    if constexpr (requires { row.timer_due; }) slot.stored_timer = row.timer_due;
    slot.row = row;
    slot.before = std::move(row);
  }
}

template <class Row>
void move_rows(std::unordered_map<std::int64_t, Slot<Row>>& rows, std::vector<Row>& fresh,
               std::vector<Update<Row>>& changed, RowType type, TimerWrites& timers) {
  for (auto& [id, slot] : rows) {
    if constexpr (requires { slot.row.timer_due; }) {
      if (slot.row.timer_due != slot.stored_timer) {
        slot.changed = true;
        if (slot.stored_timer) timers.timers_gone.push_back({*slot.stored_timer, type, id});
        if (slot.row.timer_due) timers.timers_new.push_back({*slot.row.timer_due, type, id});
      }
    }
    if (slot.is_new)
      fresh.push_back(std::move(slot.row));
    else if (slot.changed)
      changed.push_back({*std::move(slot.before), std::move(slot.row)});
  }
}

bool is_open(std::string_view status) {
  return status == name(StepStatus::pending) || status == name(StepStatus::dispatched) ||
         status == name(StepStatus::polling);
}

}  // namespace

std::size_t HashNeed::operator()(const Need& need) const noexcept {
  constexpr std::size_t odd = 0x9e3779b97f4a7c15;
  std::size_t hash = need.index();
  const auto mix = [&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Time>)
      hash = (hash ^ static_cast<std::size_t>(to_millis(field))) * odd;
    else
      hash = (hash ^ std::hash<Field>{}(field)) * odd;
  };
  std::visit([&](const auto& asked) { boost::pfr::for_each_field(asked, mix); }, need);
  return hash ^ (hash >> 29);
}

void Ledger::add(Loaded loaded, const Needs& answered) {
  for (const StepExecution& step : loaded.steps)
    if (!steps_.contains(step.id)) steps_by_member_[step.batch_member_id].push_back(step.id);
  std::vector<std::int64_t> members;
  for (const Member& member : loaded.members) members.push_back(member.id);
  insert(runbooks_, loaded.runbooks, Table::runbooks, loaded.unreadable);
  insert(batches_, loaded.batches, Table::batches, loaded.unreadable);
  insert(members_, loaded.members, Table::batch_members, loaded.unreadable);
  insert(phases_, loaded.phases, Table::phase_executions, loaded.unreadable);
  insert(steps_, loaded.steps, Table::step_executions, loaded.unreadable);
  insert(inits_, loaded.inits, Table::init_executions, loaded.unreadable);
  insert(cleanups_, loaded.cleanups, Table::cleanup_executions, loaded.unreadable);
  insert(holds_, loaded.holds, Table::holds, loaded.unreadable);
  for (const std::int64_t id : members) {
    Slot<Member>& slot = members_.at(id);
    members_by_batch_[slot.row.batch_id][id] = &slot;
  }
  for (Count& c : loaded.counts)
    counts_.try_emplace({c.batch_id, c.phase_execution_id, c.lane, c.step_index, c.status},
                        Counted{c.n, false});
  for (const StepPlace& place : loaded.places) places_.try_emplace(place.step_id, place);
  for (auto& row : loaded.data_rows) data_rows_.try_emplace({row.table, row.member_key}, std::move(row.data));
  answered_.insert(answered.begin(), answered.end());
}

Slot<Runbook>* Ledger::runbook(std::int64_t id) {
  if (auto* found = find(runbooks_, id)) return found;
  require(need::Runbook{id});
  return nullptr;
}

Slot<Runbook>* Ledger::runbook(const std::string& name, std::int32_t version) {
  Slot<Runbook>* best = nullptr;
  const auto better = [&](const Runbook& row) {
    if (version > 0) return row.version == version;
    return !best || std::pair(row.is_active, row.version) > std::pair(best->row.is_active, best->row.version);
  };
  if (version == 0) require(need::RunbookNamed{name, 0});
  for (auto& [id, slot] : runbooks_)
    if (slot.row.name == name && better(slot.row)) best = readable(slot);
  if (!best) require(need::RunbookNamed{name, version});
  return best;
}

Slot<Runbook>* Ledger::latest_version(const std::string& name) {
  require(need::LatestVersion{name});
  Slot<Runbook>* best = nullptr;
  for (auto& [id, slot] : runbooks_)
    if (slot.row.name == name && (!best || slot.row.version > best->row.version)) best = readable(slot);
  return best;
}

bool Ledger::is_table_of_another(const std::string& table, const std::string& name) {
  require(need::RunbooksOfTable{table});
  return std::ranges::any_of(runbooks_, [&](const auto& entry) {
    return entry.second.row.data_table_name == table && entry.second.row.name != name;
  });
}

Slot<Batch>* Ledger::batch(std::int64_t id) {
  if (auto* found = find(batches_, id)) return found;
  require(need::Batch{id});
  return nullptr;
}

Slot<Batch>* Ledger::batch_of_time(const std::string& runbook_name, Time time) {
  require(need::BatchOfTime{runbook_name, time});
  Slot<Batch>* best = nullptr;
  for (auto& [id, slot] : batches_) {
    if (is_terminal(slot.row.status) || slot.row.is_manual || slot.row.batch_start_time != time) continue;
    const auto* of = runbook(slot.row.runbook_id);
    if (of && of->row.name == runbook_name && (!best || best->row.id < id)) best = readable(slot);
  }
  return best;
}

std::vector<Slot<Batch>*> Ledger::open_batches(const std::string& runbook_name, std::int64_t after,
                                               std::int32_t limit) {
  require(need::OpenBatches{runbook_name, after, limit});
  auto found = filter(batches_, [&](const Batch& row) {
    if (row.id <= after || is_terminal(row.status)) return false;
    const auto* of = runbook(row.runbook_id);
    return of && of->row.name == runbook_name;
  });
  if (found.size() > static_cast<std::size_t>(limit)) found.resize(static_cast<std::size_t>(limit));
  return found;
}

std::vector<Slot<Batch>*> Ledger::begun_batches(const std::string& runbook_name, std::int32_t limit) {
  require(need::BegunBatches{runbook_name, limit});
  return filter(batches_, [&](const Batch& row) {
    const auto* of = is_terminal(row.status) ? nullptr : runbook(row.runbook_id);
    return of && of->row.name == runbook_name;
  });
}

Slot<PhaseExecution>* Ledger::phase(std::int64_t id) {
  if (auto* found = find(phases_, id)) return found;
  require(need::Phase{id});
  return nullptr;
}

namespace {

template <class Row>
Slot<Row>& existing(Slot<Row>* slot, std::string_view table, std::int64_t id) {
  if (!slot)
    throw Unreadable{"table " + std::string(table) + " has no row " + std::to_string(id) +
                     ", which others refer to"};
  return *slot;
}

}  // namespace

Slot<Runbook>& Ledger::existing_runbook(std::int64_t id) { return existing(runbook(id), "runbooks", id); }
Slot<Batch>& Ledger::existing_batch(std::int64_t id) { return existing(batch(id), "batches", id); }
Slot<PhaseExecution>& Ledger::existing_phase(std::int64_t id) {
  return existing(phase(id), "phase_executions", id);
}

std::vector<Slot<PhaseExecution>*> Ledger::phases_of(std::int64_t batch_id) {
  if (auto* b = find(batches_, batch_id); !b || !b->is_new) require(need::PhasesOf{batch_id});
  return filter(phases_, [&](const PhaseExecution& row) { return row.batch_id == batch_id; });
}

std::vector<Slot<InitExecution>*> Ledger::inits_of(std::int64_t batch_id) {
  if (auto* b = find(batches_, batch_id); !b || !b->is_new) require(need::InitsOf{batch_id});
  auto found = filter(inits_, [&](const InitExecution& row) { return row.batch_id == batch_id; });
  std::ranges::stable_sort(found, {}, [](const Slot<InitExecution>* s) {
    return std::pair(s->row.runbook_version, s->row.step_index);
  });
  return found;
}

Slot<Member>* Ledger::member(std::int64_t id) {
  if (auto* found = find(members_, id)) return found;
  require(need::Member{id});
  return nullptr;
}

std::vector<Slot<Member>*> Ledger::members_of(std::int64_t batch_id, std::int64_t after, std::int32_t limit) {
  require(need::MembersOf{batch_id, after, limit});
  std::vector<Slot<Member>*> found;
  auto& all = members_by_batch_[batch_id];
  for (auto it = all.upper_bound(after); it != all.end() && found.size() < static_cast<std::size_t>(limit);
       ++it)
    found.push_back(readable(*it->second));
  return found;
}

std::vector<Slot<Member>*> Ledger::failed_members_of(std::int64_t batch_id, std::int32_t limit) {
  require(need::FailedMembersOf{batch_id, 0, limit});
  std::vector<Slot<Member>*> found;
  for (auto& [id, slot] : members_by_batch_[batch_id])
    if (slot->row.status == MemberStatus::failed && found.size() < static_cast<std::size_t>(limit))
      found.push_back(readable(*slot));
  return found;
}

std::vector<Slot<Member>*> Ledger::members_named(std::int64_t batch_id, const std::string& key) {
  if (auto* b = find(batches_, batch_id); !b || !b->is_new) require(need::MembersNamed{batch_id, key});
  std::vector<Slot<Member>*> found;
  for (auto& [id, slot] : members_by_batch_[batch_id])
    if (slot->row.member_key == key) found.push_back(readable(*slot));
  return found;
}

// Asked for by phase, or with all of the member; of what is new there is nothing in the store.
void Ledger::require_steps(std::int64_t member_id, std::int64_t phase_id, Need need) const {
  if (knows(need) || knows(need::StepsOfMember{member_id})) return;
  const auto member = members_.find(member_id);
  const auto phase = phases_.find(phase_id);
  if ((member != members_.end() && member->second.is_new) || (phase != phases_.end() && phase->second.is_new))
    return;
  throw NotLoaded{{std::move(need)}};
}

std::vector<Slot<StepExecution>*> Ledger::find_steps(std::int64_t member_id, std::int64_t phase_id) {
  std::vector<Slot<StepExecution>*> found;
  if (const auto ids = steps_by_member_.find(member_id); ids != steps_by_member_.end())
    for (const std::int64_t id : ids->second)
      if (Slot<StepExecution>& slot = steps_.at(id); slot.row.phase_execution_id == phase_id)
        found.push_back(readable(slot));
  std::ranges::sort(found, {}, [](const auto* s) { return std::pair(s->row.step_index, s->row.id); });
  return found;
}

std::vector<Slot<StepExecution>*> Ledger::steps_of(std::int64_t member_id, std::int64_t phase_id) {
  require_steps(member_id, phase_id, need::StepsOf{member_id, phase_id});
  return find_steps(member_id, phase_id);
}

Slot<StepExecution>* Ledger::step_ahead(std::int64_t member_id, std::int64_t phase_id) {
  const need::StepsOf all{member_id, phase_id};
  if (!knows(all)) require_steps(member_id, phase_id, need::StepsAhead{member_id, phase_id});
  std::int32_t over = 0;  // since they were loaded
  // As many as were asked for may have succeeded in this batch. Of those behind them, others may be here that nobody asked
  // for in their order.
  const auto require_rest = [&] {
    if (over >= need::StepsAhead::limit && !knows(all)) require_steps(member_id, phase_id, all);
  };
  for (Slot<StepExecution>* slot : find_steps(member_id, phase_id)) {
    if (slot->row.status != StepStatus::succeeded) return require_rest(), slot;
    if (slot->before && slot->before->status != StepStatus::succeeded) ++over;
  }
  require_rest();
  return nullptr;
}

std::vector<Slot<StepExecution>*> Ledger::steps_of_member(std::int64_t member_id) {
  const auto* of = find(members_, member_id);
  if (!of || !of->is_new) require(need::StepsOfMember{member_id});
  std::vector<Slot<StepExecution>*> found;
  if (const auto ids = steps_by_member_.find(member_id); ids != steps_by_member_.end())
    for (const std::int64_t id : ids->second) found.push_back(readable(steps_.at(id)));
  std::ranges::sort(found, {}, [](const auto* s) {
    return std::tuple(s->row.phase_execution_id, s->row.step_index, s->row.id);
  });
  return found;
}

std::vector<Slot<StepExecution>*> Ledger::parked_steps(std::int64_t batch_id, std::int32_t limit) {
  require(need::ParkedSteps{batch_id, limit});
  std::set<std::int64_t> phases;
  for (const Slot<PhaseExecution>* phase : phases_of(batch_id)) phases.insert(phase->row.id);
  auto found = filter(steps_, [&](const StepExecution& row) {
    return row.job_state == JobState::parked && phases.contains(row.phase_execution_id);
  });
  if (found.size() > static_cast<std::size_t>(limit)) found.resize(static_cast<std::size_t>(limit));
  return found;
}

std::vector<Slot<StepExecution>*> Ledger::limited_steps(std::int64_t phase_id, std::int32_t limit) {
  if (auto* p = find(phases_, phase_id); !p || !p->is_new) require(need::LimitedSteps{phase_id, limit});
  auto found = filter(steps_, [&](const StepExecution& row) {
    return row.job_state == JobState::limited && row.phase_execution_id == phase_id;
  });
  std::ranges::stable_sort(found, std::greater{}, [](const auto* step) { return step->row.step_index; });
  if (found.size() > static_cast<std::size_t>(limit)) found.resize(static_cast<std::size_t>(limit));
  return found;
}

std::vector<Slot<Member>*> Ledger::held_members(std::int64_t hold_id, std::int32_t limit) {
  require(need::HeldMembers{hold_id, limit});
  auto found = filter(members_, [&](const Member& row) { return row.hold_id == hold_id; });
  if (found.size() > static_cast<std::size_t>(limit)) found.resize(static_cast<std::size_t>(limit));
  return found;
}

std::vector<Slot<CleanupExecution>*> Ledger::cleanups_of(const Job& cause) {
  if (!cause.state->is_new)
    require(cause.step ? Need{need::CleanupsOfStep{cause.ref.id}} : Need{need::CleanupsOfInit{cause.ref.id}});
  return filter(cleanups_, [&](const CleanupExecution& row) {
    return cause.step ? row.caused_by_step_id == cause.ref.id : row.caused_by_init_id == cause.ref.id;
  });
}

std::vector<Slot<CleanupExecution>*> Ledger::removals_of(std::int64_t member_id) {
  require(need::RemovalsOf{member_id});
  return filter(cleanups_, [&](const CleanupExecution& row) {
    return row.kind == CleanupKind::removal && row.batch_member_id == member_id;
  });
}

std::vector<Slot<CleanupExecution>*> Ledger::open_cleanups_of(std::int64_t batch_id) {
  require(need::OpenCleanupsOf{batch_id});
  return filter(cleanups_, [&](const CleanupExecution& row) {
    return row.batch_id == batch_id && !is_terminal(row.status);
  });
}

std::vector<Slot<CleanupExecution>*> Ledger::dead_cleanups_of(std::int64_t batch_id) {
  require(need::DeadCleanupsOf{batch_id});
  return filter(cleanups_, [&](const CleanupExecution& row) { return row.batch_id == batch_id && row.dead_at; });
}

Slot<Hold>* Ledger::hold(std::int64_t id) {
  if (auto* found = find(holds_, id)) return found;
  require(need::Hold{id});
  return nullptr;
}

std::vector<Slot<Hold>*> Ledger::holds_of(std::int64_t batch_id) {
  if (auto* b = find(batches_, batch_id); !b || !b->is_new) require(need::HoldsOf{batch_id});
  return filter(holds_, [&](const Hold& row) { return row.batch_id == batch_id; });
}

const StepPlace* Ledger::place_of(std::int64_t step_id) const {
  const auto it = places_.find(step_id);
  return it == places_.end() ? nullptr : &it->second;
}

std::optional<Job> Ledger::job(Ref ref) {
  switch (ref.type) {
    case RowType::step:
      if (auto* slot = find(steps_, ref.id))
        return Job{.ref = ref, .row = &slot->row, .state = slot, .step = &slot->row};
      require(need::Step{ref.id});
      return std::nullopt;
    case RowType::init:
      if (auto* slot = find(inits_, ref.id))
        return Job{.ref = ref, .row = &slot->row, .state = slot, .init = &slot->row};
      require(need::Init{ref.id});
      return std::nullopt;
    case RowType::cleanup:
      if (auto* slot = find(cleanups_, ref.id))
        return Job{.ref = ref, .row = &slot->row, .state = slot, .cleanup = &slot->row};
      require(need::Cleanup{ref.id});
      return std::nullopt;
    default: return std::nullopt;
  }
}

OptionalJson Ledger::data_row(const std::string& table, const std::string& member_key) {
  require(need::DataRow{table, member_key});
  const auto it = data_rows_.find({table, member_key});
  return it == data_rows_.end() ? OptionalJson{} : OptionalJson{it->second};
}

const Definition& Ledger::definition(const Runbook& row) {
  auto& known = definitions_[row.id];
  if (!known) known = find_definition_(row);
  if (!known)
    throw Unreadable{"version " + std::to_string(row.version) + " of runbook '" + row.name +
                     "' has a text that cannot be read; validate it"};
  return *known;
}

const Definition& Ledger::definition(const Batch& of, std::int32_t version) {
  auto* row = runbook(of.runbook_id);
  if (!row) throw Unreadable{"batch " + std::to_string(of.id) + " belongs to no runbook"};
  if (row->row.version != version) {
    const std::string runbook_name = row->row.name;
    row = runbook(runbook_name, version);
    if (!row)
      throw Unreadable{"there is no version " + std::to_string(version) + " of runbook '" + runbook_name +
                       "'"};
  }
  return definition(row->row);
}

std::int64_t Ledger::count(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane,
                           std::int32_t step_index, std::string_view status) {
  require(need::CountsOf{batch_id, phase_id});
  const auto it = counts_.find({batch_id, phase_id, std::string(lane), step_index, std::string(status)});
  return it == counts_.end() ? 0 : it->second.n;
}

void Ledger::count(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane,
                   std::int32_t step_index, std::string_view status, std::int64_t by) {
  require(need::CountsOf{batch_id, phase_id});
  Counted& counted = counts_[{batch_id, phase_id, std::string(lane), step_index, std::string(status)}];
  counted.n += by;
  counted.changed = true;
}

std::int64_t Ledger::open_count(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane,
                                std::optional<std::int32_t> step_index) {
  require(need::CountsOf{batch_id, phase_id});
  std::int64_t open = 0;
  for (auto it = counts_.lower_bound({batch_id, phase_id, std::string(lane), step_index.value_or(-1), ""});
       it != counts_.end(); ++it) {
    const CountKey& key = it->first;
    if (key.batch_id != batch_id || key.phase_id != phase_id || key.lane != lane) break;
    if (step_index && key.step_index != *step_index) break;
    if (is_open(key.status)) open += it->second.n;
  }
  return open;
}

std::int32_t Ledger::last_index(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane) {
  require(need::CountsOf{batch_id, phase_id});
  std::int32_t last = -1;
  for (auto it = counts_.lower_bound({batch_id, phase_id, std::string(lane), -1, ""}); it != counts_.end();
       ++it) {
    if (it->first.batch_id != batch_id || it->first.phase_id != phase_id || it->first.lane != lane) break;
    if (it->second.n > 0) last = it->first.step_index;
  }
  return last;
}

std::int64_t Ledger::next_id(Table table) {
  auto& pool = ids_[table];
  if (pool.empty()) throw NoIds{table};
  const std::int64_t id = pool.back();
  pool.pop_back();
  ids_taken_[table].push_back(id);
  return id;
}

std::size_t Ledger::ids_taken(Table table) const {
  const auto it = ids_taken_.find(table);
  return it == ids_taken_.end() ? 0 : it->second.size();
}

void Ledger::return_ids() {
  for (auto& [table, taken] : ids_taken_) ids_[table].insert(ids_[table].end(), taken.rbegin(), taken.rend());
  ids_taken_.clear();
}

template <class Row>
Slot<Row>& Ledger::create_in(std::unordered_map<std::int64_t, Slot<Row>>& rows, Table table, Row row) {
  row.id = next_id(table);
  Slot<Row> slot;
  slot.is_new = true;
  slot.row = std::move(row);
  const std::int64_t id = slot.row.id;
  return rows.try_emplace(id, std::move(slot)).first->second;
}

Slot<Runbook>& Ledger::create(Runbook row) { return create_in(runbooks_, Table::runbooks, std::move(row)); }
Slot<Batch>& Ledger::create(Batch row) {
  auto& slot = create_in(batches_, Table::batches, std::move(row));
  answered_.insert(need::CountsOf{slot.row.id, 0});
  return slot;
}
Slot<Member>& Ledger::create(Member row) {
  auto& slot = create_in(members_, Table::batch_members, std::move(row));
  members_by_batch_[slot.row.batch_id][slot.row.id] = &slot;
  return slot;
}
Slot<PhaseExecution>& Ledger::create(PhaseExecution row) {
  auto& slot = create_in(phases_, Table::phase_executions, std::move(row));
  answered_.insert(need::CountsOf{slot.row.batch_id, slot.row.id});
  return slot;
}
Slot<StepExecution>& Ledger::create(StepExecution row) {
  auto& slot = create_in(steps_, Table::step_executions, std::move(row));
  steps_by_member_[slot.row.batch_member_id].push_back(slot.row.id);
  return slot;
}
Slot<InitExecution>& Ledger::create(InitExecution row) {
  return create_in(inits_, Table::init_executions, std::move(row));
}
Slot<CleanupExecution>& Ledger::create(CleanupExecution row) {
  return create_in(cleanups_, Table::cleanup_executions, std::move(row));
}

Slot<Hold>& Ledger::create(Hold row) { return create_in(holds_, Table::holds, std::move(row)); }

SlotState* Ledger::slot_of(const RowTimer& timer) {
  const auto in = [&](auto& rows) -> SlotState* {
    const auto it = rows.find(timer.id);
    return it == rows.end() ? nullptr : &it->second;
  };
  switch (timer.type) {
    case RowType::step: return in(steps_);
    case RowType::init: return in(inits_);
    case RowType::cleanup: return in(cleanups_);
    case RowType::phase: return in(phases_);
    case RowType::batch: return in(batches_);
    case RowType::runbook: return in(runbooks_);
    case RowType::none: break;
  }
  return nullptr;
}

bool Ledger::holds(const RowTimer& timer) {
  const SlotState* slot = slot_of(timer);
  return slot && (slot->unreadable || (slot->stored_timer && *slot->stored_timer <= timer.due));
}

void Ledger::fired(const RowTimer& timer) {
  SlotState* slot = slot_of(timer);
  if (slot && slot->stored_timer && *slot->stored_timer < timer.due) slot->stored_timer = timer.due;
}

Writes Ledger::take_writes(TimerWrites& timers) {
  Writes w;
  move_rows(runbooks_, w.runbooks_new, w.runbooks_changed, RowType::runbook, timers);
  move_rows(batches_, w.batches_new, w.batches_changed, RowType::batch, timers);
  move_rows(members_, w.members_new, w.members_changed, RowType::none, timers);
  move_rows(phases_, w.phases_new, w.phases_changed, RowType::phase, timers);
  move_rows(steps_, w.steps_new, w.steps_changed, RowType::step, timers);
  move_rows(inits_, w.inits_new, w.inits_changed, RowType::init, timers);
  move_rows(cleanups_, w.cleanups_new, w.cleanups_changed, RowType::cleanup, timers);
  move_rows(holds_, w.holds_new, w.holds_changed, RowType::none, timers);
  for (const auto& [key, counted] : counts_)
    if (counted.changed)
      w.counts.push_back({key.batch_id, key.phase_id, key.lane, key.step_index, key.status, counted.n});
  return w;
}

}  // namespace baton::runbook
