#include "bus/request_link.hpp"

namespace baton::bus {

void Request::forget_content() {
  MessagePtr rest = new_message();
  pn_message_set_id(rest.get(), pn_message_get_id(message.get()));
  message = std::move(rest);
  encoded = {};
}

RequestLink::RequestLink(Client& client, pn_link_t* link, int at_once, std::size_t bytes_max)
    : client_(client), link_(link), bytes_max_(bytes_max) {
  pn_link_set_max_message_size(link_, bytes_max_);
  pn_link_flow(link_, at_once);
}

void RequestLink::on_delivery(pn_delivery_t* delivery) {
  auto transfer = take_transfer(link_, delivery, bytes_max_);
  if (!transfer) return;
  auto message = decode(*transfer);
  pn_delivery_update(delivery, message ? PN_ACCEPTED : PN_REJECTED);
  pn_delivery_settle(delivery);
  if (!message) return (void)pn_link_flow(link_, 1);
  auto request = std::make_shared<Request>(Request{*std::move(message), {}, *std::move(transfer)});
  request->reply_to = text_of(pn_message_get_reply_to(request->message.get()));
  on_request(request);
  request->forget_content();
}

// $cbs and $management have different names for the same.
void RequestLink::answer(const Request& request, const Outcome& outcome, const std::function<void(pn_data_t*)>& add) {
  const MessagePtr reply = new_message();
  pn_message_set_correlation_id(reply.get(), pn_message_get_id(request.message.get()));
  pn_data_t* properties = pn_message_properties(reply.get());
  begin_map(properties);
  for (const char* key : {"status-code", "statusCode"}) put(properties, key, outcome.status);
  for (const char* key : {"status-description", "statusDescription"}) put(properties, key, std::string_view(outcome.description));
  if (outcome.condition) {
    pn_data_put_string(properties, bytes_of("errorCondition"));
    pn_data_put_symbol(properties, bytes_of(outcome.condition));
  }
  pn_data_exit(properties);
  if (add) add(pn_message_body(reply.get()));
  if (!client_.answer(link_, request.reply_to, reply.get()))
    return client_.end_link(link_, {"amqp:resource-limit-exceeded", "nobody takes the answers to what is asked over this link"});
  pn_link_flow(link_, 1);
}

void RequestLink::reply(const Request& request, const Answer& said) {
  if (said.body.empty()) return answer(request, said.outcome);
  answer(request, said.outcome, [&](pn_data_t* body) { (void)pn_data_decode(body, said.body.data(), said.body.size()); });
}

}  // namespace baton::bus
