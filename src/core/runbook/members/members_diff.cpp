#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/runbook/members/members.hpp"

namespace baton::runbook {
namespace {

// Says how many leave, and who: another set has another mark.
std::string mark_of(const std::vector<const KnownMember*>& leaving) {
  std::vector<std::int64_t> ids;
  for (const KnownMember* member : leaving) ids.push_back(member->id);
  std::ranges::sort(ids);
  std::string text;
  for (const std::int64_t id : ids) text += std::to_string(id) + ',';
  return std::to_string(ids.size()) + '-' + std::to_string(hash_data(text));
}

class Differ {
 public:
  Differ(const DataSource& source, const std::vector<SourceMember>& members,
         const std::vector<KnownMember>& known)
      : immediate_(source.immediate || source.batch_time_column.empty()),
        removal_percent_(static_cast<std::size_t>(std::max(source.max_removal_percent, 0))),
        members_(members),
        known_(known),
        states_(members.size()) {}

  Diff diff(const std::vector<ApprovedRemovals>& approved, Time now);

 private:
  // What the known members say of a source member.
  struct State {
    bool present = false;  // it is where it belongs, or was there and must not come again
    bool held = false;     // it would leave a batch that is held, so it cannot join another one
  };
  struct Batch {
    std::size_t active = 0, failed = 0;
    std::size_t active_leaving = 0;
    std::vector<const KnownMember*> leaving;  // also of those who failed
  };

  void look_at(const KnownMember& known);
  [[nodiscard]] bool loses_too_many(const Batch& batch) const;
  void settle_leaves(const std::vector<ApprovedRemovals>& approved);
  void settle_joins(Time now);
  [[nodiscard]] std::optional<std::size_t> find(const std::string& key) const;

  const bool immediate_;
  const std::size_t removal_percent_;
  const std::vector<SourceMember>& members_;
  const std::vector<KnownMember>& known_;
  std::unordered_map<std::string_view, std::size_t> places_;  // of keys in the source's list
  std::vector<State> states_;                                 // by place
  std::map<std::int64_t, Batch> batches_;                     // that are open
  std::map<Time, std::int64_t> open_;                         // the newest open batch of each T
  Diff diff_;
};

Diff Differ::diff(const std::vector<ApprovedRemovals>& approved, Time now) {
  places_.reserve(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    // A key that comes twice, which read_members() refuses, is where it was first.
    if (!places_.try_emplace(members_[i].member_key, i).second) states_[i].present = true;
  }
  for (const KnownMember& known : known_) {
    // A batch without T was made by hand, whatever it says.
    if (!known.batch_manual && known.batch_time) look_at(known);
  }
  settle_leaves(approved);
  settle_joins(now);
  return std::move(diff_);
}

std::optional<std::size_t> Differ::find(const std::string& key) const {
  const auto found = places_.find(key);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

void Differ::look_at(const KnownMember& known) {
  if (known.batch_open) {
    std::int64_t& newest = open_.try_emplace(*known.batch_time, known.batch_id).first->second;
    newest = std::max(newest, known.batch_id);
  }
  const auto place = find(known.member_key);
  const bool belongs = place && (immediate_ || members_[*place].batch_time == known.batch_time);
  if (belongs && (known.status != "removed" || known.removed_by_hand)) states_[*place].present = true;
  const bool is_changed = belongs && hash_data(members_[*place].data.text) != known.data_hash;
  // Who has failed may be retried, with what the source says by then.
  if (is_changed && (known.status == "failed" || (known.batch_open && known.status == "active")))
    diff_.refreshes.push_back({{known.batch_id, known.id}, *place});
  const bool has_failed = known.status == "failed";
  if (!known.batch_open || (known.status != "active" && !has_failed)) return;

  Batch& batch = batches_[known.batch_id];
  ++(has_failed ? batch.failed : batch.active);
  // Who has failed and is given another T begins anew there; nothing that it has done is cleaned up for that.
  if (has_failed ? place.has_value() : belongs) return;
  batch.leaving.push_back(&known);
  if (!has_failed) ++batch.active_leaving;
}

// The rule is about active members, and those who failed must not make these look few. That many of those who failed
// are gone is as suspicious, so all are counted together as well.
bool Differ::loses_too_many(const Batch& batch) const {
  constexpr std::size_t held_min = 5;
  const auto is_too_many = [&](std::size_t count, std::size_t of) {
    return count >= held_min && count * 100 > removal_percent_ * of;
  };
  return is_too_many(batch.active_leaving, batch.active) ||
         is_too_many(batch.leaving.size(), batch.active + batch.failed);
}

void Differ::settle_leaves(const std::vector<ApprovedRemovals>& approved) {
  for (const auto& [batch_id, batch] : batches_) {
    const bool too_many = loses_too_many(batch);
    ApprovedRemovals all{batch_id, too_many ? mark_of(batch.leaving) : ""};
    const bool is_held = too_many && std::ranges::find(approved, all) == approved.end();
    if (is_held) diff_.held.push_back({batch_id, batch.active, {}, std::move(all.mark)});
    auto& to = is_held ? diff_.held.back().members : diff_.leaves;
    for (const KnownMember* known : batch.leaving) {
      to.push_back({batch_id, known->id});
      // Nobody is in two batches: who cannot leave cannot join.
      if (const auto place = find(known->member_key); is_held && place) states_[*place].held = true;
    }
  }
}

void Differ::settle_joins(Time now) {
  std::map<Time, Diff::Joins> by_time;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (states_[i].present || states_[i].held) continue;
    const auto time = immediate_ ? immediate_time(now) : members_[i].batch_time;
    if (time) by_time[*time].members.push_back(i);
  }
  for (auto& [time, joins] : by_time) {
    joins.batch_time = time;
    if (const auto open = open_.find(time); open != open_.end()) joins.batch_id = open->second;
    // Those who join would make the leavers few enough to leave at the next look.
    if (joins.batch_id && std::ranges::count(diff_.held, *joins.batch_id, &Diff::Held::batch_id) > 0)
      continue;
    diff_.joins.push_back(std::move(joins));
  }
}

}  // namespace

Diff diff_members(const DataSource& source, const std::vector<SourceMember>& members,
                  const std::vector<KnownMember>& known, const std::vector<ApprovedRemovals>& approved,
                  Time now) {
  return Differ(source, members, known).diff(approved, now);
}

}  // namespace baton::runbook
