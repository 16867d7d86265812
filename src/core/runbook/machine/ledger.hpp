// The rows that a batch of messages is decided on: loaded before, changed while deciding, written after. A
// row that nobody foresaw is asked for by throwing NotLoaded; the engine loads it and has everything decided
// again.
//
// Invariants: a row is in the ledger once; what a Need has asked for is either here or does not exist; ids of
// new rows come from the database, in blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/runbook/definition/definition.hpp"
#include "core/runbook/machine/rows.hpp"
#include "core/runbook/machine/store_needs.hpp"

namespace baton::runbook {

using Needs = std::set<Need>;

struct NotLoaded {
  Needs needs;
};
// There are not enough ids at hand.
struct NoIds {
  Table table{};
};
// What is stored cannot be worked with: the message is refused, a timer is put off.
struct Unreadable {
  std::string message;
};

struct SlotState {
  bool is_new = false;
  bool changed = false;
  bool unreadable = false;  // another program wrote what we do not know
  std::optional<Time> stored_timer;
};
template <class Row>
struct Slot : SlotState {
  Row row;
  std::optional<Row> before;  // as it was loaded: what differs from it is written; none: it is new
};

// One job, whichever of the three tables it is in.
struct Job {
  Ref ref;
  Execution* row = nullptr;
  SlotState* state = nullptr;
  StepExecution* step = nullptr;
  InitExecution* init = nullptr;
  CleanupExecution* cleanup = nullptr;
};

using IdPool = std::map<Table, std::vector<std::int64_t>>;  // the next one last
using FindDefinition = std::function<std::shared_ptr<const Definition>(const Runbook&)>;

class Ledger {
 public:
  Ledger(FindDefinition find_definition, IdPool& ids)
      : find_definition_(std::move(find_definition)), ids_(ids) {}

  void add(Loaded loaded, const Needs& answered);
  [[nodiscard]] bool knows(const Need& need) const { return answered_.contains(need); }

  // Null: there is none. Throw NotLoaded when nobody has asked yet, and Unreadable for a row that cannot be
  // read.
  [[nodiscard]] Slot<Runbook>* runbook(std::int64_t id);
  [[nodiscard]] Slot<Runbook>* runbook(const std::string& name, std::int32_t version);
  [[nodiscard]] Slot<Runbook>* latest_version(const std::string& name);
  // The data table of that name belongs to another runbook.
  [[nodiscard]] bool is_table_of_another(const std::string& table, const std::string& name);
  [[nodiscard]] Slot<Batch>* batch(std::int64_t id);
  [[nodiscard]] Slot<Batch>* batch_of_time(const std::string& runbook_name, Time time);
  [[nodiscard]] std::vector<Slot<Batch>*> open_batches(const std::string& runbook_name, std::int64_t after,
                                                       std::int32_t limit);
  // Open ones that may have begun: so many of those that have, and all that are here.
  [[nodiscard]] std::vector<Slot<Batch>*> begun_batches(const std::string& runbook_name, std::int32_t limit);
  [[nodiscard]] Slot<PhaseExecution>* phase(std::int64_t id);
  [[nodiscard]] std::vector<Slot<PhaseExecution>*> phases_of(std::int64_t batch_id);
  [[nodiscard]] std::vector<Slot<InitExecution>*> inits_of(std::int64_t batch_id);
  [[nodiscard]] Slot<Member>* member(std::int64_t id);
  [[nodiscard]] std::vector<Slot<Member>*> members_of(std::int64_t batch_id, std::int64_t after,
                                                      std::int32_t limit);
  [[nodiscard]] std::vector<Slot<Member>*> failed_members_of(std::int64_t batch_id, std::int32_t limit);
  [[nodiscard]] std::vector<Slot<Member>*> members_named(std::int64_t batch_id, const std::string& key);
  // By step_index.
  [[nodiscard]] std::vector<Slot<StepExecution>*> steps_of(std::int64_t member_id, std::int64_t phase_id);
  // The first of them that has not succeeded; null: all have.
  [[nodiscard]] Slot<StepExecution>* step_ahead(std::int64_t member_id, std::int64_t phase_id);
  [[nodiscard]] std::vector<Slot<StepExecution>*> steps_of_member(std::int64_t member_id);
  [[nodiscard]] std::vector<Slot<StepExecution>*> parked_steps(std::int64_t batch_id, std::int32_t limit);
  [[nodiscard]] std::vector<Slot<StepExecution>*> limited_steps(std::int64_t phase_id, std::int32_t limit);
  [[nodiscard]] std::vector<Slot<Member>*> held_members(std::int64_t hold_id, std::int32_t limit);
  [[nodiscard]] std::vector<Slot<CleanupExecution>*> cleanups_of(const Job& cause);
  [[nodiscard]] std::vector<Slot<CleanupExecution>*> removals_of(std::int64_t member_id);
  [[nodiscard]] std::vector<Slot<CleanupExecution>*> open_cleanups_of(std::int64_t batch_id);
  [[nodiscard]] std::vector<Slot<CleanupExecution>*> dead_cleanups_of(std::int64_t batch_id);
  [[nodiscard]] Slot<Hold>* hold(std::int64_t id);
  [[nodiscard]] std::vector<Slot<Hold>*> holds_of(std::int64_t batch_id);
  [[nodiscard]] std::optional<Job> job(Ref ref);  // step, init or cleanup
  // As it was when the step was loaded; null: it was not asked for by its id.
  [[nodiscard]] const StepPlace* place_of(std::int64_t step_id) const;
  [[nodiscard]] OptionalJson data_row(const std::string& table, const std::string& member_key);

  // Those that others refer to: throw Unreadable when there is none.
  [[nodiscard]] Slot<Runbook>& existing_runbook(std::int64_t id);
  [[nodiscard]] Slot<Batch>& existing_batch(std::int64_t id);
  [[nodiscard]] Slot<PhaseExecution>& existing_phase(std::int64_t id);

  // What holds for a version of a runbook; throws Unreadable.
  [[nodiscard]] const Definition& definition(const Runbook& runbook);
  [[nodiscard]] const Definition& definition(const Batch& batch, std::int32_t version);

  // Counts, by lane and status; see Count.
  [[nodiscard]] std::int64_t count(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane,
                                   std::int32_t step_index, std::string_view status);
  void count(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane, std::int32_t step_index,
             std::string_view status, std::int64_t by);
  // Pending, dispatched and polling ones of a lane; of one step when it is said which.
  [[nodiscard]] std::int64_t open_count(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane,
                                        std::optional<std::int32_t> step_index = std::nullopt);
  // The largest step_index of a lane that has been counted; -1: nothing was.
  [[nodiscard]] std::int32_t last_index(std::int64_t batch_id, std::int64_t phase_id, std::string_view lane);

  // New rows; the id is filled in.
  Slot<Runbook>& create(Runbook row);
  Slot<Batch>& create(Batch row);
  Slot<Member>& create(Member row);
  Slot<PhaseExecution>& create(PhaseExecution row);
  Slot<StepExecution>& create(StepExecution row);
  Slot<InitExecution>& create(InitExecution row);
  Slot<CleanupExecution>& create(CleanupExecution row);
  Slot<Hold>& create(Hold row);

  // The row that a timer belongs to has a time to wait for, which may have passed before the timer if it was
  // put off; otherwise it is a stray one.
  [[nodiscard]] bool holds(const RowTimer& timer);
  // The timer has fired, if its row is here: it is the one that is stored, later than the row says if it was put off.
  void fired(const RowTimer& timer);
  // What is to be written; the ledger is spent afterwards.
  [[nodiscard]] Writes take_writes(TimerWrites& timers);

  // The ids that new rows were given, by table: how many, and back to the pool because nothing of it was
  // written.
  [[nodiscard]] std::size_t ids_taken(Table table) const;
  void return_ids();

 private:
  [[nodiscard]] SlotState* slot_of(const RowTimer& timer);
  struct CountKey {
    std::int64_t batch_id = 0, phase_id = 0;
    std::string lane;
    std::int32_t step_index = 0;
    std::string status;
    friend auto operator<=>(const CountKey&, const CountKey&) = default;
  };
  struct Counted {
    std::int64_t n = 0;
    bool changed = false;
  };

  void require(Need need) const {
    if (!knows(need)) throw NotLoaded{{std::move(need)}};
  }
  void require_steps(std::int64_t member_id, std::int64_t phase_id, Need need) const;
  std::vector<Slot<StepExecution>*> find_steps(std::int64_t member_id, std::int64_t phase_id);
  std::int64_t next_id(Table table);
  template <class Row>
  Slot<Row>& create_in(std::unordered_map<std::int64_t, Slot<Row>>& rows, Table table, Row row);

  FindDefinition find_definition_;
  IdPool& ids_;
  IdPool ids_taken_;  // the last one last
  std::unordered_set<Need, HashNeed> answered_;
  std::unordered_map<std::int64_t, Slot<Runbook>> runbooks_;
  std::unordered_map<std::int64_t, Slot<Batch>> batches_;
  std::unordered_map<std::int64_t, Slot<Member>> members_;
  std::unordered_map<std::int64_t, Slot<PhaseExecution>> phases_;
  std::unordered_map<std::int64_t, Slot<StepExecution>> steps_;
  std::unordered_map<std::int64_t, Slot<InitExecution>> inits_;
  std::unordered_map<std::int64_t, Slot<CleanupExecution>> cleanups_;
  std::unordered_map<std::int64_t, Slot<Hold>> holds_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> steps_by_member_;
  std::map<std::int64_t, std::map<std::int64_t, Slot<Member>*>> members_by_batch_;
  std::unordered_map<std::int64_t, StepPlace> places_;
  std::map<CountKey, Counted> counts_;
  std::map<std::pair<std::string, std::string>, Json> data_rows_;
  std::map<std::int64_t, std::shared_ptr<const Definition>> definitions_;
};

}  // namespace baton::runbook
