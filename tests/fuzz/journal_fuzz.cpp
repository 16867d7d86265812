// Whatever the bytes of a row of the journal are, reading them must not crash, and what was read is written and read
// again as it was.
#include <cstddef>
#include <cstdint>

#include "store/journal/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  const store::JournalRow row{1, store::journal_format, {reinterpret_cast<const char*>(data), size}};
  const auto first = store::decode_journal(row);
  if (!first) return 0;
  const auto written = store::encode_journal(first->writes, first->unchanged);
  if (!written) return 0;  // a text that no database takes
  const auto second = store::decode_journal({1, store::journal_format, written->data});
  ENSURE(second);
  const auto again = store::encode_journal(second->writes, second->unchanged);
  ENSURE(again && again->data == written->data);
  return 0;
}
