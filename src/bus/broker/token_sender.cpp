#include "bus/broker/token_sender.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "bus/transfer.hpp"

namespace baton::bus {
namespace {

constexpr std::chrono::seconds answer_time{30};
constexpr std::size_t answer_bytes_max = 64 << 10;

std::string_view answered_id(pn_message_t* answer) {
  const pn_atom_t id = pn_message_get_correlation_id(answer);
  return id.type == PN_STRING ? text_of(id.u.as_bytes) : "";
}

}  // namespace

TokenSender::TokenSender(pn_session_t* session, std::string host, std::vector<std::string> entities, TokenFor token_for, std::function<void()> done,
                         std::function<void(Trouble)> refused)
    : session_(session),
      host_(std::move(host)),
      entities_(std::move(entities)),
      token_for_(std::move(token_for)),
      done_(std::move(done)),
      refused_(std::move(refused)) {
  make_links();
}

// By another name each time: the broker may not be done with those before.
void TokenSender::make_links() {
  reply_address_ = fmt::format("baton-cbs-{}", ++links_made_);
  const std::string name = fmt::format("baton-cbs-sender-{}", links_made_);
  sender_ = pn_sender(session_, name.c_str());
  receiver_ = pn_receiver(session_, reply_address_.c_str());
  pn_terminus_set_address(pn_link_target(sender_), "$cbs");
  pn_terminus_set_address(pn_link_source(sender_), name.c_str());
  pn_terminus_set_address(pn_link_source(receiver_), "$cbs");
  pn_terminus_set_address(pn_link_target(receiver_), reply_address_.c_str());
  pn_link_open(sender_);
  pn_link_open(receiver_);
  pn_link_flow(receiver_, static_cast<int>(entities_.size()));
}

void TokenSender::drop_links() {
  for (pn_link_t* link : {std::exchange(sender_, nullptr), std::exchange(receiver_, nullptr)}) {
    pn_link_close(link);
    pn_link_free(link);
  }
}

void TokenSender::on_flow(Time now) {
  while (put_ < entities_.size() && pn_link_credit(sender_) > 0) put(entities_[put_++], now);
}

void TokenSender::put(const std::string& entity, Time now) {
  const std::string resource = fmt::format("sb://{}/{}", host_, entity);
  const TokenToPut token = token_for_(resource, now);
  renew_at_ = token.renew_at;
  const MessagePtr message = new_message();
  pn_atom_t id{};
  id.type = PN_STRING;
  const std::string number = std::to_string(++sent_);
  id.u.as_bytes = bytes_of(number);
  pn_message_set_id(message.get(), id);
  pn_message_set_reply_to(message.get(), reply_address_.c_str());
  pn_data_t* properties = pn_message_properties(message.get());
  begin_map(properties);
  bus::put(properties, "operation", std::string_view("put-token"));
  bus::put(properties, "type", std::string_view(token.type));
  bus::put(properties, "name", std::string_view(resource));
  pn_data_exit(properties);
  pn_data_put_string(pn_message_body(message.get()), bytes_of(token.text));
  const std::string bytes = encode(message.get());
  pn_delivery_t* delivery = pn_delivery(sender_, pn_dtag(number.data(), number.size()));
  pn_link_send(sender_, bytes.data(), bytes.size());
  pn_link_advance(sender_);
  pn_delivery_settle(delivery);
  awaited_.insert(number);
}

void TokenSender::on_delivery(pn_delivery_t* delivery) {
  if (pn_delivery_link(delivery) != receiver_) return;
  const auto transfer = take_transfer(receiver_, delivery, answer_bytes_max);
  if (!transfer) return;
  pn_delivery_update(delivery, PN_ACCEPTED);
  pn_delivery_settle(delivery);
  pn_link_flow(receiver_, 1);
  const auto answer = decode(*transfer);
  if (!answer) return refused_(std::string("its answer cannot be read"));
  pn_data_t* properties = pn_message_properties(answer->get());
  if (awaited_.erase(std::string(answered_id(answer->get()))) == 0) return;  // to a token of another round
  const auto status = int_in(properties, "status-code");
  // What is wrong with one entity is told when its link is attached.
  if (status == 401 || status == 403)
    return refused_({std::to_string(*status), fmt::format("{} {}", *status, clean_text(text_in(properties, "status-description"), 1'000))});
  if (is_answered() && std::exchange(is_first_round_, false)) done_();
}

void TokenSender::on_tick(Time now) {
  if (is_first_round_ || now < (is_answered() ? renew_at_ : round_began_ + answer_time)) return;
  put_all(now);
}

void TokenSender::put_all(Time now) {
  put_ = 0;
  awaited_.clear();
  round_began_ = now;
  if (!sender_) make_links();
  on_flow(now);
}

}  // namespace baton::bus
