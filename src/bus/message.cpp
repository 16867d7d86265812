#include "bus/message.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>

namespace baton::bus {

Received received(const Sections& sections) { return {text_of_body(sections), scheduled_for(sections)}; }

Result<std::vector<Received>> read_messages(std::string_view encoded) {
  const auto messages = split_transfer(encoded);
  if (!messages) return fail(Code::invalid, messages.error());
  std::vector<Received> all;
  all.reserve(messages->size());
  for (const Sections& one : *messages) all.push_back(received(one));
  return all;
}

Result<MessagePtr> decode(std::string_view encoded) {
  MessagePtr message = new_message();
  if (pn_message_decode(message.get(), encoded.data(), encoded.size()) != 0) return fail(Code::invalid, "not an AMQP message: it cannot be decoded");
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

void put_number(LockToken& token, std::size_t at, std::size_t count, std::uint64_t value) {
  for (std::size_t i = 0; i < count; ++i) token[at + i] = static_cast<char>(value >> ((count - 1 - i) * 8));
}

std::uint64_t number_in(const LockToken& token, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(token[at + i]);
  return value;
}

}  // namespace baton::bus
