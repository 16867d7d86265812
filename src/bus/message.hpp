// Messages as they are on the wire: read without knowing who sent them, and made for workers.
#pragma once

#include <proton/message.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "bus/connection.hpp"
#include "bus/messages/sections.hpp"

namespace baton::bus {

struct FreeMessage {
  void operator()(pn_message_t* message) const { pn_message_free(message); }
};
using MessagePtr = std::unique_ptr<pn_message_t, FreeMessage>;
[[nodiscard]] inline MessagePtr new_message() { return MessagePtr(pn_message()); }

// What is seen of a message that was sent to us.
struct Received {
  std::string body;                   // of its data, or of its value if that is a text
  std::optional<Time> scheduled_for;  // not before then
};

[[nodiscard]] Received received(const Sections& sections);

// What one transfer brings: a message, or a batch of them, as the SDKs of Service Bus send it.
[[nodiscard]] Result<std::vector<Received>> read_messages(std::string_view encoded);

[[nodiscard]] Result<MessagePtr> decode(std::string_view encoded);
[[nodiscard]] std::string encode(pn_message_t* message);

// A message of ours, section by section: proton leaves out what has its default, and a delivery count of 0 must be there.
class MessageWriter {
 public:
  MessageWriter();
  ~MessageWriter();
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;

  void header(std::uint32_t delivery_count, std::optional<Duration> time_to_live = std::nullopt);
  // The maps are filled by `fill`, between begin_map() and its end.
  void annotations(const std::function<void(pn_data_t*)>& fill);
  // Without a subject there is none.
  void properties(std::string_view message_id, std::string_view content_type, std::string_view subject = {});
  void application_properties(const std::function<void(pn_data_t*)>& fill);
  void data(std::string_view bytes);
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void section(std::uint64_t number, const std::function<void(pn_data_t*)>& put_value);

  pn_data_t* const data_;
  std::string out_;
};

// Maps of a message, such as its application properties.
[[nodiscard]] std::string text_in(pn_data_t* map, std::string_view key);  // empty: there is none
[[nodiscard]] std::optional<std::int32_t> int_in(pn_data_t* map, std::string_view key);
void begin_map(pn_data_t* data);  // into it; the end is pn_data_exit()
void put(pn_data_t* map, std::string_view key, std::string_view value);
void put(pn_data_t* map, std::string_view key, std::int32_t value);
void put_symbol(pn_data_t* map, std::string_view key);  // the key alone

// The token of a lock, as .NET writes the bytes of a GUID, in which order Service Bus has them in delivery tags. In the maps
// of $management they are a UUID of AMQP.
using LockToken = std::array<char, 16>;
[[nodiscard]] LockToken new_token();  // that nobody can guess
[[nodiscard]] LockToken swapped(const LockToken& token);  // from either to the other
// Numbers in tokens that say what they are of: so many bytes from there, the largest first.
void put_number(LockToken& token, std::size_t at, std::size_t count, std::uint64_t value);
[[nodiscard]] std::uint64_t number_in(const LockToken& token, std::size_t at, std::size_t count);

}  // namespace baton::bus
