// A table in memory: its rows by key, and indexes over them that every write keeps.
//
// An index is a type that says which rows it holds and in which order:
//
//   struct MembersLeft {
//     static bool has(const Member& m) { return m.status != MemberStatus::active; }  // without it: all rows
//     static auto key(const Member& m) { return std::tie(m.batch_id, m.status, m.id); }  // no two alike
//   };
//
// Rows are looked up by the first few values of an index, as in a database. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

namespace baton::store::memory {

// What names a row; specialized for tables whose key is not an id.
template <class Row>
struct PrimaryKey {
  static std::int64_t of(const Row& row) { return row.id; }
};

// Compares as many values as the shorter of the two has: the first that differs decides.
template <class... A, class... B>
bool less_by_prefix(const std::tuple<A...>& a, const std::tuple<B...>& b) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    bool less = false;
    (void)((std::get<I>(a) < std::get<I>(b) ? (less = true) : std::get<I>(b) < std::get<I>(a)) || ...);
    return less;
  }(std::make_index_sequence<std::min(sizeof...(A), sizeof...(B))>{});
}

inline auto at_most(std::size_t limit) {
  return std::views::take(static_cast<std::ptrdiff_t>(std::min(limit, std::size_t{PTRDIFF_MAX})));
}

template <class Row, class Index>
class IndexOrder {
 public:
  struct Less {
    using is_transparent = void;
    bool operator()(const Row* a, const Row* b) const {
      return less_by_prefix(Index::key(*a), Index::key(*b));
    }
    template <class... V>
    bool operator()(const Row* a, const std::tuple<V...>& b) const {
      return less_by_prefix(Index::key(*a), b);
    }
    template <class... V>
    bool operator()(const std::tuple<V...>& a, const Row* b) const {
      return less_by_prefix(a, Index::key(*b));
    }
  };
  using Set = std::set<const Row*, Less>;
  using Node = typename Set::node_type;

  [[nodiscard]] const Set& rows() const { return rows_; }
  void clear() { rows_.clear(); }
  // Out of the index before the row changes, into it afterwards, where its key then says.
  [[nodiscard]] Node take(const Row& row) { return has(row) ? rows_.extract(&row) : Node{}; }
  void put(const Row& row, Node node = {}) {
    if (!has(row)) return;
    if (node)
      rows_.insert(std::move(node));
    else
      rows_.insert(&row);
  }

 private:
  static bool has(const Row& row) {
    if constexpr (requires { Index::has(row); }) return Index::has(row);
    return true;
  }
  Set rows_;
};

template <class Row, class... Indexes>
class IndexedTable {
 public:
  using Key = decltype(PrimaryKey<Row>::of(std::declval<const Row&>()));

  IndexedTable() = default;
  IndexedTable(const IndexedTable&) = delete;  // the indexes point into the rows
  IndexedTable& operator=(const IndexedTable&) = delete;

  [[nodiscard]] auto begin() const { return rows_.begin(); }
  [[nodiscard]] auto end() const { return rows_.end(); }
  [[nodiscard]] auto rbegin() const { return rows_.rbegin(); }
  [[nodiscard]] auto find(const Key& key) const { return rows_.find(key); }
  [[nodiscard]] auto lower_bound(const Key& key) const { return rows_.lower_bound(key); }
  [[nodiscard]] auto upper_bound(const Key& key) const { return rows_.upper_bound(key); }
  [[nodiscard]] const Row& at(const Key& key) const { return rows_.at(key); }
  [[nodiscard]] const Row* get(const Key& key) const {  // nullptr: there is none
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool contains(const Key& key) const { return rows_.contains(key); }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // The rows (as pointers) whose index begins with these values, in its order.
  template <class Index, class... V>
  [[nodiscard]] auto with(const V&... values) const {
    const auto& order = rows_by<Index>();
    const std::tuple<const V&...> key(values...);
    return std::ranges::subrange(order.lower_bound(key), order.upper_bound(key));
  }
  // Of the rows whose index begins with `values`, those behind the ones that go on with `rest`.
  template <class Index, class... V, class... W>
  [[nodiscard]] auto after(const std::tuple<V...>& values, const W&... rest) const {
    const auto& order = rows_by<Index>();
    const auto key = std::tuple_cat(values, std::tuple<const W&...>(rest...));
    return std::ranges::subrange(order.upper_bound(key), order.upper_bound(values));
  }
  // … and those before them.
  template <class Index, class... V, class... W>
  [[nodiscard]] auto before(const std::tuple<V...>& values, const W&... rest) const {
    const auto& order = rows_by<Index>();
    const auto key = std::tuple_cat(values, std::tuple<const W&...>(rest...));
    return std::ranges::subrange(order.lower_bound(values), order.lower_bound(key));
  }

  // False: there is a row of this key, and nothing was done.
  bool insert(const Row& row) {
    const auto [at, is_new] = rows_.emplace(PrimaryKey<Row>::of(row), row);
    if (is_new) (std::get<IndexOrder<Row, Indexes>>(indexes_).put(at->second), ...);
    return is_new;
  }
  // `f` is given the row, which must exist, and may change everything but its key.
  template <class F>
  void change(const Key& key, F&& f) {
    Row& row = rows_.at(key);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] auto nodes = std::tuple{std::get<I>(indexes_).take(row)...};
      std::forward<F>(f)(row);
      (std::get<I>(indexes_).put(row, std::move(std::get<I>(nodes))), ...);
    }(std::index_sequence_for<Indexes...>{});
  }
  void erase(const Key& key) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) return;
    ((void)std::get<IndexOrder<Row, Indexes>>(indexes_).take(found->second), ...);
    rows_.erase(found);
  }
  void clear() {
    (std::get<IndexOrder<Row, Indexes>>(indexes_).clear(), ...);
    rows_.clear();
  }

 private:
  template <class Index>
  [[nodiscard]] const auto& rows_by() const {
    return std::get<IndexOrder<Row, Index>>(indexes_).rows();
  }

  std::map<Key, Row> rows_;
  std::tuple<IndexOrder<Row, Indexes>...> indexes_;
};

}  // namespace baton::store::memory
