// What a commit changed, as the bytes of a row of the journal: after-images of rows that only baton writes, in the
// order of WriteSet. Rows of runbooks are not in it; they are written in the commit itself.
//
// The format. Numbers are LEB128, signed ones zigzag; a time is the difference to the time before it, in
// milliseconds. A text is a number n: even, n/2 bytes follow; odd, it is text n/2 of those of this entry that were
// told and have 4 to 64 bytes, or more than 16 KiB. Each list is its length and its rows; a row is the set of its columns that are not
// as in a new struct, as a number (bit i is column i of store/tables.hpp), and their values. Of a row that was changed only the
// key and the live columns are told. Columns may be added behind the others; anything else is a new version.
// Version 2 has service calls behind the rest. Version 3 has behind them which columns of which changed nodes stay as they were, and that version and
// later ones alone refer to texts of more than 16 KiB. Version 4 has queues, topics and their messages behind them, in the order of
// message::Writes. Bytes are their length and themselves, whatever they are. Of what goes only the key is told: of a message its entity
// and its number as differences to those of the one before, with its lane between.
#pragma once

#include <string>
#include <string_view>

#include "store/columns.hpp"
#include "store/journal/tables.hpp"

namespace baton::store {

inline constexpr std::int32_t journal_format = 4;

// Live columns of a changed node that are as they were before the commit, and are not told again because they are large.
struct Unchanged {
  std::size_t row = 0;  // in nodes_changed
  ColumnSet columns = 0;
};

struct Encoded {
  std::string data;
  std::size_t left_out = 0;  // bytes of texts that are not in it, because they are told elsewhere
};
// Code::invalid: a text that a database would refuse when the tables follow, NUL or no UTF-8.
[[nodiscard]] Result<Encoded> encode_journal(const WriteSet& writes, const std::vector<Unchanged>& unchanged = {});

struct Decoded {
  WriteSet writes;
  std::vector<Unchanged> unchanged;  // empty in `writes`: whoever writes them brings them from the row before
};
[[nodiscard]] Result<Decoded> decode_journal(const JournalRow& row);

}  // namespace baton::store
