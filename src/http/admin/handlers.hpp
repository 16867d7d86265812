// What may be done with what a path names. Each asks the engine and answers in Atom.
#pragma once

#include "http/admin/target.hpp"
#include "http/wire/context.hpp"

namespace baton::http::admin {

Task<Response> show_namespace(Context& context);
// Queues, topics, or the subscriptions of a topic.
Task<Response> list_entities(Context& context, const Target& target);
Task<Response> list_rules(Context& context, const Target& target);

Task<Response> show_entity(Context& context, const Target& target);
Task<Response> put_entity(Context& context, const Target& target);
Task<Response> delete_entity(Context& context, const Target& target);

Task<Response> show_rule(Context& context, const Target& target);
Task<Response> put_rule(Context& context, const Target& target);
Task<Response> delete_rule(Context& context, const Target& target);

}  // namespace baton::http::admin
