// The JSON of queues, topics, subscriptions and their messages.
#pragma once

#include <string>

#include "http/json/render.hpp"
#include "ports/broker_state.hpp"
#include "ports/bus_commands.hpp"

namespace baton::http {

void append_entity(std::string& out, const EntityInfo& info, ObjectEnd ending = ObjectEnd::closed);

// Of one that is peeked at; with its content if Documents::all.
void append_message(std::string& out, const message::Message& message, Documents documents);

// The external broker.
void append_broker(std::string& out, const BrokerState::View& broker);

}  // namespace baton::http
