// What operators and their tools ask: alive, ready, counters, the API's description.
#include "http/api/routes.hpp"
#include "http/json/problem.hpp"

namespace baton::http {

Task<Response> show_health(Context&) { co_return json_response(200, R"({"status":"ok"})"); }

Task<Response> show_readiness(Context& context) {
  if (context.wait_state.stopping) co_return problem(503, "stopping", "the server is stopping");
  using enum Readiness::State;
  const auto [state, turn] = context.services.readiness();
  const std::string took = std::to_string(turn.count());
  if (state == store_away) co_return problem(503, "store_unavailable", "the store is away");
  if (state == stalled) co_return problem(503, "engine_stalled", "one turn of the engine has taken " + took + " ms");
  if (state == tables_behind)
    co_return problem(503, "tables_behind", "the tables cannot follow what is committed, and reads are refused until they can; the log of the server says why");
  co_return json_response(200, state == slow ? R"({"status":"ready","slow_turn_ms":)" + took + "}"
                                             : R"({"status":"ready"})");
}

Task<Response> show_metrics(Context& context) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = context.services.metrics.render();
  co_return response;
}

Task<Response> show_openapi(Context&) { co_return json_response(200, openapi_document()); }

}  // namespace baton::http
