// $management of a queue or a pool: locks are renewed there, and settled if the link is gone over which their messages came.
#include <algorithm>

#include "bus/job_outlet.hpp"
#include "bus/messages/rule_requests.hpp"
#include "bus/request_link.hpp"

namespace baton::bus {
namespace {

constexpr std::size_t tokens_max = 1'000;

std::vector<LockToken> tokens_in(pn_data_t* body) {
  std::vector<LockToken> tokens;
  pn_data_rewind(body);
  if (!pn_data_next(body) || pn_data_type(body) != PN_MAP) return tokens;
  pn_data_enter(body);
  while (pn_data_next(body)) {
    const bool is_it = pn_data_type(body) == PN_STRING && text_of(pn_data_get_string(body)) == "lock-tokens";
    if (!pn_data_next(body)) break;
    if (!is_it || (pn_data_type(body) != PN_ARRAY && pn_data_type(body) != PN_LIST)) continue;
    pn_data_enter(body);
    while (pn_data_next(body) && tokens.size() < tokens_max) {
      if (pn_data_type(body) != PN_UUID) continue;
      LockToken token;
      std::ranges::copy(pn_data_get_uuid(body).bytes, token.begin());
      tokens.push_back(swapped(token));
    }
    pn_data_exit(body);
  }
  pn_data_exit(body);
  return tokens;
}

void put_expirations(pn_data_t* body, std::size_t count, Time until) {
  begin_map(body);
  pn_data_put_string(body, bytes_of("expirations"));
  pn_data_put_array(body, false, PN_TIMESTAMP);
  pn_data_enter(body);
  for (std::size_t i = 0; i < count; ++i) pn_data_put_timestamp(body, to_millis(until));
  pn_data_exit(body);
  pn_data_exit(body);
}

const Outcome lock_lost{410, "The lock supplied is invalid. Either the lock expired, or the message has already been removed.",
                        "com.microsoft:message-lock-lost"};
const Outcome busy{503, "the engine cannot be asked at the moment", "com.microsoft:server-busy"};

class ManagementLink final : public RequestLink {
 public:
  ManagementLink(Client& client, pn_link_t* link, std::string queue, std::optional<EntityKey> subscription)
      : RequestLink(client, link, answers_max), queue_(std::move(queue)), subscription_(std::move(subscription)), principal_(client.principal()) {}

 private:
  void on_request(std::shared_ptr<Request> request) override {
    const std::weak_ptr<RequestLink> weak = weak_from_this();
    if (subscription_ && take_rule_request(client_, principal_, *subscription_, *request, weak, [this, request](const Answer& said) { reply(*request, said); }))
      return;
    const std::string operation = request->property("operation");
    pn_data_t* body = pn_message_body(request->message.get());
    const auto tokens = tokens_in(body);
    const bool is_renewal = operation == "com.microsoft:renew-lock";
    if (!is_renewal && operation != "com.microsoft:update-disposition")
      return answer(*request, {501, "'" + operation + "' cannot be done here", "amqp:not-implemented"});
    if (tokens.empty()) return answer(*request, {400, "no lock tokens were named"});
    if (is_renewal) return remember(request, tokens, 0, [this, request, tokens] { renew(request, tokens); });
    const Disposition said{text_in(body, "disposition-status"), text_in(body, "deadletter-reason"), text_in(body, "deadletter-description")};
    remember(request, tokens, 0, [this, request, tokens, said] { settle(request, tokens, said); });
  }

  // Looks for the locks that are not remembered, from number `at` on, one after the other. After a restart none is.
  void remember(const std::shared_ptr<Request>& request, const std::vector<LockToken>& tokens, std::size_t at, const std::function<void()>& then) {
    Services& services = client_.services();
    while (at < tokens.size() && services.locks.contains(tokens[at])) ++at;
    if (at == tokens.size()) return then();
    if (!services.options.find_job) return answer(*request, lock_lost);
    using Found = Result<std::optional<FoundJob>>;
    services.options.find_job(principal_.own(), queue_, tokens[at],
                              arriving<Found>(services.mailbox, [this, weak = weak_from_this(), request, tokens, at, then](Found found) {
                                const auto alive = weak.lock();
                                if (!alive) return;
                                const auto connection = client_.shared_from_this();
                                on_looked_for(request, tokens, at, then, std::move(found));
                                connection->pump();
                              }));
  }

  void on_looked_for(const std::shared_ptr<Request>& request, const std::vector<LockToken>& tokens, std::size_t at, const std::function<void()>& then,
                     Result<std::optional<FoundJob>> found) {
    if (!found) return answer(*request, busy);
    if (!*found) return answer(*request, lock_lost);
    Services& services = client_.services();
    const Time until = services.clock.now() + services.options.lock_time;
    services.locks.try_emplace(tokens[at], Lock{principal_.tenant, queue_, std::move((*found)->task), until, (*found)->is_kept});
    remember(request, tokens, at + 1, then);
  }

  [[nodiscard]] Lock* lock(const LockToken& token) {
    const auto found = client_.services().locks.find(token);
    if (found == client_.services().locks.end()) return nullptr;
    Lock& held = found->second;
    return held.queue == queue_ && held.tenant == principal_.tenant ? &held : nullptr;
  }

  void renew(std::shared_ptr<Request> request, const std::vector<LockToken>& tokens) {
    Heartbeat beat{.tenant = principal_.tenant,
                   .worker = client_.name(),
                   .tasks = {},
                   .lease_time = client_.services().options.lock_time};
    for (const LockToken& token : tokens) {
      const Lock* held = lock(token);
      if (!held) return answer(*request, lock_lost);
      beat.tasks.push_back(held->task);
    }
    client_.submit(std::move(beat), weak_from_this(), [this, request, tokens](const Reply& reply) {
      const auto* renewed = std::get_if<HeartbeatReply>(&reply);
      if (!renewed) return answer(*request, busy);
      if (!renewed->cancelled.empty()) return answer(*request, lock_lost);
      for (const LockToken& token : tokens)
        if (Lock* held = lock(token)) held->until = renewed->lease_until;
      answer(*request, {200, "OK"}, [&](pn_data_t* body) { put_expirations(body, tokens.size(), renewed->lease_until); });
    });
  }

  struct Disposition {
    std::string status, reason, description;
  };
  void settle(std::shared_ptr<Request> request, const std::vector<LockToken>& tokens, const Disposition& said) {
    using How = SettleTask::How;
    const std::string& status = said.status;
    if (status != "completed" && status != "abandoned" && status != "suspended")
      return answer(*request, {501, "'" + status + "' is nothing that can be done with a job", "amqp:not-implemented"});
    if (tokens.size() != 1) return answer(*request, {400, "one lock token is expected"});
    const Lock* held = lock(tokens.front());
    const How how = status == "completed" ? How::keep : status == "abandoned" ? How::abandon : How::give_up;
    if (!held || (held->is_kept && how != How::keep)) return answer(*request, lock_lost);
    const std::string reason =
        how == How::abandon ? abandoned : dead_lettered(said.reason, said.description);
    client_.submit(settlement(*held, how, reason), weak_from_this(), [this, request, token = tokens.front()](const Reply& reply) {
      const auto* refused = std::get_if<Refused>(&reply);
      if (refused && may_pass(*refused)) return answer(*request, busy);
      client_.services().locks.erase(token);
      answer(*request, refused ? lock_lost : Outcome{200, "OK"});
    });
  }

  const std::string queue_;
  const std::optional<EntityKey> subscription_;
  const Principal principal_;  // as it was when the link was attached
};

}  // namespace

std::shared_ptr<Link> make_management(Client& client, pn_link_t* link, std::string queue, std::optional<EntityKey> subscription) {
  return std::make_shared<ManagementLink>(client, link, std::move(queue), std::move(subscription));
}

}  // namespace baton::bus
