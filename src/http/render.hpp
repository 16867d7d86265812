// The JSON of what the API shows, written straight as text.
#pragma once

#include <string>
#include <vector>

#include "ports/commands.hpp"
#include "ports/reads.hpp"

namespace baton::http {

// Without the closing brace when more members follow.
enum class Ending { closed, open };

void append_job(std::string& out, const workflow::Job& job, bool with_data, Ending ending = Ending::closed);
void append_nodes(std::string& out, const std::vector<workflow::NodeState>& nodes, std::size_t nodes_max);
void append_event(std::string& out, const workflow::Event& event);
void append_handout(std::string& out, const Handout& task);

// "key":… with a comma before it unless it is the first member.
void append_member(std::string& out, std::string_view key, std::string_view text);
inline void append_member(std::string& out, std::string_view key, const std::string& text) {
  append_member(out, key, std::string_view(text));
}
void append_member(std::string& out, std::string_view key,
                   const std::optional<std::string>& text);  // none: null
void append_member(std::string& out, std::string_view key, std::int64_t number);
void append_member(std::string& out, std::string_view key, Time time);
void append_member(std::string& out, std::string_view key, const std::optional<Time>& time);
void append_member(std::string& out, std::string_view key, const OptionalJson& json);
void append_flag(std::string& out, std::string_view key, bool truth);

}  // namespace baton::http
