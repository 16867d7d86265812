#include "store/journal/codec.hpp"

#include <span>
#include <unordered_map>

#include "store/statements.hpp"

namespace baton::store {
namespace {

using namespace workflow;

// A result is in its own row and in that of its node, and may be large.
constexpr std::size_t large_text = 16 << 10;
constexpr bool is_remembered(std::string_view text, std::int32_t format) {
  return (text.size() >= 4 && text.size() <= 64) || (text.size() > large_text && format >= 3);
}

// What is told as a difference may be any number: nothing overflows.
constexpr std::int64_t difference(std::int64_t value, std::int64_t before) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(before));
}
constexpr std::int64_t sum(std::int64_t before, std::int64_t difference) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(before) + static_cast<std::uint64_t>(difference));
}

// --- writing

class Encoder {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void integer(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void time(Time value) {
    integer(difference(to_millis(value), last_time_));
    last_time_ = to_millis(value);
  }
  void text(std::string_view value) {
    if (is_remembered(value, journal_format)) {
      const auto [known, is_new] = texts_.try_emplace(value, texts_.size());
      if (!is_new) {
        if (value.size() > large_text) left_out_ += value.size();
        return number(known->second << 1 | 1);
      }
    }
    acceptable_ = acceptable_ && value.find('\0') == std::string_view::npos && is_utf8(value);
    number(value.size() << 1);
    out_ += value;
  }
  void bytes(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  template <class T>
  void value(const T& from) {
    if constexpr (is_optional<T>::value)
      value(*from);  // its bit says that there is one
    else if constexpr (is_id<T>::value)
      text(from.value);
    else if constexpr (std::is_same_v<T, Json>)
      text(from.text);
    else if constexpr (std::is_same_v<T, Bytes>)
      bytes(from.value);
    else if constexpr (std::is_same_v<T, std::string>)
      text(from);
    else if constexpr (std::is_same_v<T, Time>)
      time(from);
    else if constexpr (std::is_enum_v<T>)
      text(name(from));
    else
      integer(from);
  }

  // `keeps`: a column -> whether it is told; but for those that are unchanged, which are in the order of the rows.
  template <class Row, class Keeps>
  void rows(const std::vector<Row>& list, Keeps&& keeps, std::span<const Unchanged> unchanged = {}) {
    [[maybe_unused]] static const Row empty{};  // the compiler does not see that constants are used
    number(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Row& row = list[i];
      const bool has_unchanged = !unchanged.empty() && unchanged.front().row == i;
      const ColumnSet untold = has_unchanged ? unchanged.front().columns : 0;
      if (has_unchanged) unchanged = unchanged.subspan(1);
      ColumnSet set = 0, bit = 1;
      for_each_column<Row>([&](const auto& column) {
        if ((untold & bit) != 0)
          left_out_ += size_of(row.*column.member);
        else if (keeps(column) && row.*column.member != empty.*column.member)
          set |= bit;
        bit <<= 1;
      });
      number(set);
      for_each_column<Row>([&](const auto& column) {
        if ((set & 1) != 0) value(row.*column.member);
        set >>= 1;
      });
    }
  }
  template <class Row>
  void whole(const std::vector<Row>& list) {
    rows(list, [](const auto&) { return true; });
  }
  template <class Row>
  void changed(const std::vector<Row>& list, std::span<const Unchanged> unchanged = {}) {
    rows(list, [](const auto& column) { return column.role == ColumnRole::key || column.role == ColumnRole::live; }, unchanged);
  }
  void unchanged(std::span<const Unchanged> list) {
    number(list.size());
    for (const Unchanged& each : list) {
      number(each.row);
      number(each.columns);
    }
  }
  void timers(const std::vector<Timer>& list) {
    number(list.size());
    for (const Timer& timer : list) {
      time(timer.due);
      text(name(timer.subject.type));
      text(timer.subject.id);
      text(timer.what);
    }
  }

  void keys(const std::vector<std::int64_t>& list) {
    number(list.size());
    for (const std::int64_t id : list) integer(id);
  }
  void keys(const std::vector<message::MessageKey>& list) {
    number(list.size());
    message::MessageKey last;
    for (const message::MessageKey& key : list) {
      integer(difference(key.entity_id, last.entity_id));
      text(name(key.lane));
      integer(difference(key.sequence_number, last.sequence_number));
      last = key;
    }
  }
  void keys(const std::vector<message::HistoryKey>& list) {
    number(list.size());
    for (const message::HistoryKey& key : list) {
      integer(key.entity_id);
      text(key.message_id);
    }
  }

  [[nodiscard]] Result<Encoded> finish() {
    if (!acceptable_) return fail(Code::invalid, "a text holds NUL or bytes that are not UTF-8");
    return Encoded{std::move(out_), left_out_};
  }

 private:
  template <class T>
  static std::size_t size_of(const T& value) {
    if constexpr (std::is_same_v<T, OptionalJson>) return value ? value->text.size() : 0;
    return 0;
  }

  std::string out_;
  std::size_t left_out_ = 0;
  std::unordered_map<std::string_view, std::uint64_t> texts_;  // they live as long as the write set
  std::int64_t last_time_ = 0;
  bool acceptable_ = true;
};

// --- reading

// Whatever the bytes are, it reads them within their bounds; what makes no sense is noticed in ok().
class Decoder {
 public:
  explicit Decoder(const JournalRow& row) : rest_(row.data), format_(row.format) {}
  // All of it was read, and everything made sense.
  [[nodiscard]] bool ok() const { return ok_ && rest_.empty(); }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::int64_t integer() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  Time time() {
    last_time_ = sum(last_time_, integer());
    return from_millis(last_time_);
  }
  std::string_view text() {
    const std::uint64_t header = number();
    const std::uint64_t n = header >> 1;
    if ((header & 1) != 0) return n < texts_.size() ? texts_[n] : (ok_ = false, std::string_view{});
    if (n > rest_.size()) return ok_ = false, std::string_view{};
    const std::string_view value = rest_.substr(0, n);
    rest_.remove_prefix(n);
    if (is_remembered(value, format_)) texts_.push_back(value);
    return value;
  }
  std::string_view bytes() {
    const std::uint64_t n = number();
    if (n > rest_.size()) return ok_ = false, std::string_view{};
    const std::string_view value = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return value;
  }
  template <class T>
  void value(T& to) {
    if constexpr (is_optional<T>::value)
      value(to.emplace());
    else if constexpr (is_id<T>::value)
      to.value = text();
    else if constexpr (std::is_same_v<T, Json>)
      to.text = text();
    else if constexpr (std::is_same_v<T, Bytes>)
      to.value = bytes();
    else if constexpr (std::is_same_v<T, std::string>)
      to = text();
    else if constexpr (std::is_same_v<T, Time>)
      to = time();
    else if constexpr (std::is_enum_v<T>)
      word(to);
    else
      to = static_cast<T>(integer());
  }

  template <class Row>
  void rows(std::vector<Row>& list) {
    for (std::uint64_t left = number(); left > 0 && ok_; --left) {
      ColumnSet set = number();
      Row& row = list.emplace_back();
      for_each_column<Row>([&](const auto& column) {
        if ((set & 1) != 0 && ok_) value(row.*column.member);
        set >>= 1;
      });
      if (set != 0) ok_ = false;  // a column that this version does not know
    }
  }
  void timers(std::vector<Timer>& list) {
    for (std::uint64_t left = number(); left > 0 && ok_; --left) {
      Timer& timer = list.emplace_back();
      timer.due = time();
      const auto type = subject_type(text());
      if (type) timer.subject.type = *type;
      ok_ = ok_ && type.has_value();
      timer.subject.id = text();
      timer.what = text();
    }
  }
  void keys(std::vector<std::int64_t>& list) {
    for (std::uint64_t left = number(); left > 0 && ok_; --left) list.push_back(integer());
  }
  void keys(std::vector<message::MessageKey>& list) {
    message::MessageKey last;
    for (std::uint64_t left = number(); left > 0 && ok_; --left) {
      last.entity_id = sum(last.entity_id, integer());
      word(last.lane);
      last.sequence_number = sum(last.sequence_number, integer());
      list.push_back(last);
    }
  }
  void keys(std::vector<message::HistoryKey>& list) {
    for (std::uint64_t left = number(); left > 0 && ok_; --left) {
      message::HistoryKey& key = list.emplace_back();
      key.entity_id = integer();
      key.message_id = text();
    }
  }
  // Of so many rows, in their order.
  void unchanged(std::vector<Unchanged>& list, std::size_t rows) {
    for (std::uint64_t left = number(); left > 0 && ok_; --left) {
      const std::size_t row = number();
      ok_ = ok_ && row < rows && (list.empty() || list.back().row < row);
      list.push_back({row, number()});
    }
  }

 private:
  template <class Enum>
  void word(Enum& to) {
    const auto known = parse(text(), Enum{});
    if (known) to = *known;
    ok_ = ok_ && known.has_value();
  }

  std::string_view rest_;
  const std::int32_t format_;
  std::vector<std::string_view> texts_;
  std::int64_t last_time_ = 0;
  bool ok_ = true;
};

}  // namespace

Result<Encoded> encode_journal(const WriteSet& writes, const std::vector<Unchanged>& unchanged) {
  Encoder to;
  to.whole(writes.jobs_new);
  to.changed(writes.jobs_changed);
  to.whole(writes.nodes_new);
  to.changed(writes.nodes_changed, unchanged);
  to.whole(writes.task_results_new);
  to.whole(writes.events_new);
  to.timers(writes.timers_new);
  to.timers(writes.timers_gone);
  to.whole(writes.tags_new);
  to.whole(writes.logs_new);
  to.whole(writes.workflows_new);
  to.whole(writes.idempotency_keys_new);
  to.whole(writes.calls.calls_new);
  to.changed(writes.calls.calls_changed);
  to.whole(writes.calls.events_new);
  to.whole(writes.calls.requests_new);
  to.whole(writes.calls.tags_new);
  to.whole(writes.calls.keys_new);
  to.unchanged(unchanged);
  const message::Writes& messages = writes.messages;
  to.whole(messages.entities_new);
  to.changed(messages.entities_changed);
  to.keys(messages.entities_gone);
  to.whole(messages.counters_new);
  to.changed(messages.counters_changed);
  to.whole(messages.messages_new);
  to.changed(messages.messages_changed);
  to.keys(messages.messages_gone);
  to.whole(messages.history_new);
  to.keys(messages.history_gone);
  return to.finish();
}

namespace {

void read_calls(Decoder& from, call::Writes& calls) {
  from.rows(calls.calls_new);
  from.rows(calls.calls_changed);
  from.rows(calls.events_new);
  from.rows(calls.requests_new);
  from.rows(calls.tags_new);
  from.rows(calls.keys_new);
}

void read_messages(Decoder& from, message::Writes& messages) {
  from.rows(messages.entities_new);
  from.rows(messages.entities_changed);
  from.keys(messages.entities_gone);
  from.rows(messages.counters_new);
  from.rows(messages.counters_changed);
  from.rows(messages.messages_new);
  from.rows(messages.messages_changed);
  from.keys(messages.messages_gone);
  from.rows(messages.history_new);
  from.keys(messages.history_gone);
}

}  // namespace

Result<Decoded> decode_journal(const JournalRow& row) {
  Decoder from(row);
  Decoded decoded;
  WriteSet& writes = decoded.writes;
  if (row.format >= 1 && row.format <= journal_format) {
    from.rows(writes.jobs_new);
    from.rows(writes.jobs_changed);
    from.rows(writes.nodes_new);
    from.rows(writes.nodes_changed);
    from.rows(writes.task_results_new);
    from.rows(writes.events_new);
    from.timers(writes.timers_new);
    from.timers(writes.timers_gone);
    from.rows(writes.tags_new);
    from.rows(writes.logs_new);
    from.rows(writes.workflows_new);
    from.rows(writes.idempotency_keys_new);
    if (row.format >= 2) read_calls(from, writes.calls);
    if (row.format >= 3) from.unchanged(decoded.unchanged, writes.nodes_changed.size());
    if (row.format >= 4) read_messages(from, writes.messages);
    if (from.ok()) return decoded;
  }
  return fail(Code::invalid, "commit " + std::to_string(row.commit_number) + " of the journal, of format " +
                                 std::to_string(row.format) + ", cannot be read by this version");
}

}  // namespace baton::store
