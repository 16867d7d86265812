// $cbs: a client shows a token for each entity that it wants to use, and again before that expires.
#include "bus/request_link.hpp"
#include "ports/shared_access.hpp"

namespace baton::bus {
namespace {

std::string text_of_token(const Request& request) {
  pn_data_t* body = pn_message_body(request.message.get());
  pn_data_rewind(body);
  if (!pn_data_next(body)) return {};
  if (pn_data_type(body) == PN_STRING) return std::string(text_of(pn_data_get_string(body)));
  if (pn_data_type(body) == PN_BINARY) return std::string(text_of(pn_data_get_binary(body)));
  return {};
}

class CbsLink final : public RequestLink {
 public:
  CbsLink(Client& client, pn_link_t* link) : RequestLink(client, link, 1) {}  // each may cost a question to the store

 private:
  void on_request(std::shared_ptr<Request> request) override {
    if (request->property("operation") != "put-token") return answer(*request, {400, "put-token is what can be done here"});
    if (client_.services().options.access == Access::open) return answer(*request, {202, "Accepted"});
    const std::string token = text_of_token(*request);
    if (!token.starts_with("SharedAccessSignature ")) return answer(*request, {401, "only shared access signatures are taken here"});
    const auto access = parse_shared_access(token);
    if (!access) return answer(*request, {401, "the shared access signature is malformed"});
    if (access->expires <= client_.services().clock.now()) return answer(*request, {401, "the shared access signature has expired"});
    look_up(std::move(request), *access);
  }

  void look_up(std::shared_ptr<Request> request, const SharedAccess& access) {
    using Found = Result<std::optional<Token>>;
    const std::weak_ptr<RequestLink> weak = weak_from_this();
    client_.services().options.tokens.by_id(
        access.key_name, arriving<Found>(client_.services().mailbox, [this, weak, request, access](Found found) {
          const auto alive = weak.lock();
          if (!alive) return;
          judge(*request, access, found);
          client_.pump();
        }));
  }

  // Whoever does not know the key hears the same, whatever it is that is wrong.
  void judge(const Request& request, const SharedAccess& access, const Result<std::optional<Token>>& found) {
    if (!found) return answer(request, {503, "the store is not reachable at the moment"});
    const std::optional<Token>& token = *found;
    if (!token || token->revoked_at || !token->bus_key || !is_signed_with(access, *token->bus_key))
      return answer(request, {401, "InvalidSignature: The token has an invalid signature."});
    if (const auto let_in = client_.let_in(*token, access.resource, access.expires); !let_in) return answer(request, {401, let_in.error()});
    answer(request, {202, "Accepted"});
  }
};

}  // namespace

std::shared_ptr<Link> make_cbs(Client& client, pn_link_t* link) { return std::make_shared<CbsLink>(client, link); }

}  // namespace baton::bus
