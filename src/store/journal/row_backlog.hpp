// Rows of one table that commits made, changed or deleted and the table does not show yet: each once, in its last state. A
// row that came and went meanwhile leaves nothing.
//
// The rows are in two lists of a write set, which the tables follow with, and found by their keys in order. The lists are not
// in order: where a row goes the last one takes its place.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "store/columns.hpp"

namespace baton::store {

// What the table is to do about a key.
enum class Fate {
  none,      // nothing
  made,      // insert
  changed,   // update
  gone,      // delete
  replaced,  // delete, then insert
};
[[nodiscard]] constexpr bool is_whole(Fate fate) { return fate == Fate::made || fate == Fate::replaced; }

// Before and after what was added.
struct FateChange {
  Fate before = Fate::none, after = Fate::none;
};

template <class Key, class Row>
class RowBacklog {
 public:
  // What is known of a key. The row is whole if the fate is; of one that was changed it has the live columns.
  struct Found {
    Fate fate = Fate::none;
    const Row* row = nullptr;  // null: gone, or nothing is known
  };
  struct Place {
    Fate fate = Fate::none;
    std::size_t at = 0;
  };
  using Places = std::map<Key, Place>;

  // The lists must outlive this object, and stay where they are.
  RowBacklog(std::vector<Row>& rows_new, std::vector<Row>& rows_changed) : new_(&rows_new), changed_(&rows_changed) {}

  FateChange add_new(const Key& key, Row&& row) {
    Place& place = places_[key];
    const Fate before = place.fate;
    // One that is there already is refused before it is committed. If it is in the journal all the same, the table refuses it.
    place = {before == Fate::gone ? Fate::replaced : Fate::made, new_->size()};
    new_->push_back(std::move(row));
    return {before, place.fate};
  }

  FateChange add_changed(const Key& key, Row&& row) {
    Place& place = places_[key];
    const Fate before = place.fate;
    if (is_whole(before) || before == Fate::changed) {
      move_live(row, list(before)[place.at]);
    } else {  // of one that is gone the table will not find it, and says so
      if (before == Fate::none) place = {Fate::changed, changed_->size()};
      changed_->push_back(std::move(row));
    }
    return {before, place.fate};
  }

  template <class KeyOf>
  FateChange add_gone(const Key& key, KeyOf&& key_of) {
    const auto found = places_.try_emplace(key).first;
    const Place place = found->second;
    if (is_whole(place.fate) || place.fate == Fate::changed) take_out(place, key_of);
    if (place.fate == Fate::made) {
      places_.erase(found);
      return {Fate::made, Fate::none};
    }
    found->second = {Fate::gone, 0};
    return {place.fate, Fate::gone};
  }

  [[nodiscard]] Found find(const Key& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? Found{} : at(found->second);
  }
  [[nodiscard]] Found at(const Place& place) const {
    const bool has_row = is_whole(place.fate) || place.fate == Fate::changed;
    return {place.fate, has_row ? &list(place.fate)[place.at] : nullptr};
  }
  [[nodiscard]] const Places& places() const { return places_; }

  // Of a row that the table has: its live columns as they are by now.
  void bring_up_to_date(const Key& key, Row& row) const {
    if (const Found found = find(key); found.row) copy_live(*found.row, row);
  }

  // Those that the table has to delete, in order.
  [[nodiscard]] std::vector<Key> gone() const {
    std::vector<Key> keys;
    for (const auto& [key, place] : places_)
      if (place.fate == Fate::gone || place.fate == Fate::replaced) keys.push_back(key);
    return keys;
  }

 private:
  [[nodiscard]] std::vector<Row>& list(Fate fate) const { return is_whole(fate) ? *new_ : *changed_; }

  void take_out(const Place& place, auto& key_of) {
    std::vector<Row>& rows = list(place.fate);
    const std::size_t last = rows.size() - 1;
    if (place.at != last) {
      const auto moved = places_.find(key_of(rows[last]));
      const bool is_its_place = moved != places_.end() && moved->second.at == last && is_whole(moved->second.fate) == is_whole(place.fate);
      rows[place.at] = std::move(rows[last]);
      if (is_its_place) moved->second.at = place.at;
    }
    rows.pop_back();
  }

  std::vector<Row>* new_;
  std::vector<Row>* changed_;
  Places places_;
};

// What is known of a key after two backlogs, one after the other.
template <class Key, class Row>
typename RowBacklog<Key, Row>::Found last_word(const RowBacklog<Key, Row>& older, const RowBacklog<Key, Row>& newer, const Key& key) {
  const auto found = newer.find(key);
  return found.fate == Fate::none ? older.find(key) : found;
}

}  // namespace baton::store
