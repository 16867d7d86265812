// What a server answers with: its routes, and how it says that a request could not even be read. The two APIs, one of JSON
// and one of XML, have the same server below them.
#pragma once

#include <string_view>
#include <vector>

#include "http/wire/message.hpp"
#include "http/wire/task.hpp"

namespace baton::http {

struct Context;

struct Api {
  std::string_view labels;                 // of the gauge that counts its connections
  std::vector<std::string_view> patterns;  // of its routes, by their index: what metrics call them
  // Routes, authenticates and handles one request. `route` is set as soon as it is known; -1: there is none. Never throws.
  Task<Response> (*dispatch)(Context& context, int& route);
  Response (*refuse)(int status, std::string_view code, std::string_view detail);
};

}  // namespace baton::http
