#include "bus/message.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>

namespace baton::bus {
namespace {

// Sections of a message (AMQP 1.0, part 3).
enum : std::uint64_t {
  first_section = 0x70,
  header_section = first_section,
  annotations_section = 0x72,
  properties_section = 0x73,
  application_section = 0x74,
  data_section = 0x75,
  value_section = 0x77,
  last_section = 0x78
};

struct FreeData {
  void operator()(pn_data_t* data) const { pn_data_free(data); }
};
using DataPtr = std::unique_ptr<pn_data_t, FreeData>;

std::unexpected<Error> malformed(const char* what) { return fail(Code::invalid, std::string("not an AMQP message: ") + what); }

// Sections are described by their number; `data` is left at the value.
Result<std::uint64_t> next_section(pn_data_t* data, std::string_view& rest) {
  pn_data_clear(data);
  const ssize_t taken = pn_data_decode(data, rest.data(), rest.size());
  if (taken <= 0) return malformed("a section cannot be decoded");
  rest.remove_prefix(static_cast<std::size_t>(taken));
  pn_data_rewind(data);
  if (!pn_data_next(data) || pn_data_type(data) != PN_DESCRIBED) return malformed("what is in it is not described");
  pn_data_enter(data);
  if (!pn_data_next(data) || pn_data_type(data) != PN_ULONG) return malformed("a section without a number");
  const std::uint64_t number = pn_data_get_ulong(data);
  if (number < first_section || number > last_section) return malformed("an unknown section");
  if (!pn_data_next(data)) return malformed("an empty section");
  return number;
}

// A batch is a message whose data are messages: nobody else's data begin like that.
bool begins_as_message(std::string_view data) {
  return data.size() > 3 && data[0] == 0 && (data[1] == 0x53 || static_cast<unsigned char>(data[1]) == 0x80);
}

void read_annotations(pn_data_t* map, Received& message) {
  if (pn_data_type(map) != PN_MAP) return;
  pn_data_enter(map);
  while (pn_data_next(map)) {
    const bool is_schedule = pn_data_type(map) == PN_SYMBOL && text_of(pn_data_get_symbol(map)) == "x-opt-scheduled-enqueue-time";
    if (!pn_data_next(map)) break;
    if (is_schedule && pn_data_type(map) == PN_TIMESTAMP) message.scheduled_for = from_millis(pn_data_get_timestamp(map));
  }
  pn_data_exit(map);
}

}  // namespace

namespace {

// A message, and the data in it: more than one section only if it is a batch.
struct Sections {
  Received message;
  std::vector<std::string> parts;
};

Result<Sections> read_sections(std::string_view encoded) {
  const DataPtr data(pn_data(16));
  Sections read;
  auto& [one, parts] = read;
  while (!encoded.empty()) {
    TRY_ASSIGN(const std::uint64_t section, next_section(data.get(), encoded));
    if (section == annotations_section) read_annotations(data.get(), one);
    if (section == data_section && pn_data_type(data.get()) == PN_BINARY)
      parts.emplace_back(text_of(pn_data_get_binary(data.get())));
    if (section == value_section && pn_data_type(data.get()) == PN_STRING) parts.emplace_back(text_of(pn_data_get_string(data.get())));
  }
  for (const std::string& part : parts) one.body += part;
  return read;
}

}  // namespace

Result<std::vector<Received>> read_messages(std::string_view encoded) {
  TRY_ASSIGN(Sections read, read_sections(encoded));
  std::vector<Received> all;
  if (read.parts.empty() || !std::ranges::all_of(read.parts, begins_as_message)) {
    all.push_back(std::move(read.message));
    return all;
  }
  for (const std::string& part : read.parts) {
    TRY_ASSIGN(Sections inner, read_sections(part));
    all.push_back(std::move(inner.message));
  }
  return all;
}

Result<MessagePtr> decode(std::string_view encoded) {
  MessagePtr message = new_message();
  if (pn_message_decode(message.get(), encoded.data(), encoded.size()) != 0) return malformed("it cannot be decoded");
  return message;
}

std::string encode(pn_message_t* message) {
  std::string out(512, '\0');
  for (;;) {
    std::size_t size = out.size();
    const int failed = pn_message_encode(message, out.data(), &size);
    if (failed == 0) return out.resize(size), out;
    ENSURE(failed == PN_OVERFLOW);
    out.resize(out.size() * 2);
  }
}

MessageWriter::MessageWriter() : data_(pn_data(16)) {}
MessageWriter::~MessageWriter() { pn_data_free(data_); }

void MessageWriter::section(std::uint64_t number, const std::function<void(pn_data_t*)>& put_value) {
  pn_data_clear(data_);
  pn_data_put_described(data_);
  pn_data_enter(data_);
  pn_data_put_ulong(data_, number);
  put_value(data_);
  pn_data_exit(data_);
  const ssize_t size = pn_data_encoded_size(data_);
  ENSURE(size > 0);
  const std::size_t before = out_.size();
  out_.resize(before + static_cast<std::size_t>(size));
  ENSURE(pn_data_encode(data_, out_.data() + before, static_cast<std::size_t>(size)) == size);
}

void MessageWriter::header(std::uint32_t delivery_count, std::optional<Duration> time_to_live) {
  section(header_section, [&](pn_data_t* to) {
    pn_data_put_list(to);
    pn_data_enter(to);
    pn_data_put_bool(to, true);  // durable
    pn_data_put_null(to);        // priority
    if (time_to_live) pn_data_put_uint(to, static_cast<std::uint32_t>(std::min<std::int64_t>(time_to_live->count(), UINT32_MAX)));
    else pn_data_put_null(to);
    pn_data_put_null(to);  // first acquirer
    pn_data_put_uint(to, delivery_count);
    pn_data_exit(to);
  });
}

void MessageWriter::annotations(const std::function<void(pn_data_t*)>& fill) {
  section(annotations_section, [&](pn_data_t* to) { begin_map(to), fill(to), pn_data_exit(to); });
}

void MessageWriter::properties(std::string_view message_id, std::string_view content_type, std::string_view subject) {
  section(properties_section, [&](pn_data_t* to) {
    pn_data_put_list(to);
    pn_data_enter(to);
    pn_data_put_string(to, bytes_of(message_id));
    for (int i = 0; i < 2; ++i) pn_data_put_null(to);  // user, to
    if (subject.empty()) pn_data_put_null(to);
    else pn_data_put_string(to, bytes_of(subject));
    for (int i = 0; i < 2; ++i) pn_data_put_null(to);  // reply-to, correlation
    pn_data_put_symbol(to, bytes_of(content_type));
    pn_data_exit(to);
  });
}

void MessageWriter::application_properties(const std::function<void(pn_data_t*)>& fill) {
  section(application_section, [&](pn_data_t* to) { begin_map(to), fill(to), pn_data_exit(to); });
}

void MessageWriter::data(std::string_view bytes) {
  section(data_section, [&](pn_data_t* to) { pn_data_put_binary(to, bytes_of(bytes)); });
}

namespace {

// Visits the values of that key, a text or a symbol.
template <class Fn>
void for_value_of(pn_data_t* map, std::string_view key, Fn visit) {
  pn_data_rewind(map);
  if (!pn_data_next(map) || pn_data_type(map) != PN_MAP) return;
  pn_data_enter(map);
  while (pn_data_next(map)) {
    const bool is_it = (pn_data_type(map) == PN_STRING && text_of(pn_data_get_string(map)) == key) ||
                       (pn_data_type(map) == PN_SYMBOL && text_of(pn_data_get_symbol(map)) == key);
    if (!pn_data_next(map)) break;
    if (is_it) visit();
  }
  pn_data_exit(map);
}

}  // namespace

std::string text_in(pn_data_t* map, std::string_view key) {
  std::string found;
  for_value_of(map, key, [&] {
    if (pn_data_type(map) == PN_STRING) found = text_of(pn_data_get_string(map));
    if (pn_data_type(map) == PN_SYMBOL) found = text_of(pn_data_get_symbol(map));
  });
  return found;
}

std::optional<std::int32_t> int_in(pn_data_t* map, std::string_view key) {
  std::optional<std::int32_t> found;
  for_value_of(map, key, [&] {
    if (pn_data_type(map) == PN_INT) found = pn_data_get_int(map);
  });
  return found;
}

void begin_map(pn_data_t* data) {
  pn_data_put_map(data);
  pn_data_enter(data);
}

void put(pn_data_t* map, std::string_view key, std::string_view value) {
  pn_data_put_string(map, bytes_of(key));
  pn_data_put_string(map, bytes_of(value));
}

void put(pn_data_t* map, std::string_view key, std::int32_t value) {
  pn_data_put_string(map, bytes_of(key));
  pn_data_put_int(map, value);
}

void put_symbol(pn_data_t* map, std::string_view key) { pn_data_put_symbol(map, bytes_of(key)); }

LockToken new_token() {
  LockToken token;
  ENSURE(RAND_bytes(reinterpret_cast<unsigned char*>(token.data()), static_cast<int>(token.size())) == 1);
  return token;
}

LockToken swapped(const LockToken& token) {
  constexpr std::array<std::size_t, 16> from{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  LockToken out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = token[from[i]];
  return out;
}

}  // namespace baton::bus
