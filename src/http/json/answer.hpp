// What handlers do with an answer of the engine or of the store: take it, or turn it into a problem.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/json/problem.hpp"
#include "http/wire/context.hpp"

namespace baton::http {

[[nodiscard]] inline Refused stopping() { return {Refusal::stopping, "the server is stopping", {}}; }

template <class R>
Task<std::expected<R, Refused>> expect(Context& context, std::shared_ptr<AwaitedReply> awaited) {
  Wait wait(context.wait_state, awaited, Interruptible::no);
  const bool here = co_await wait;
  std::expected<R, Refused> answer = std::unexpected(stopping());
  if (here) {
    Reply reply = awaited->take();
    if (auto* refused = std::get_if<Refused>(&reply)) {
      answer = std::unexpected(std::move(*refused));
    } else {
      answer = std::get<R>(std::move(reply));
    }
  }
  co_return answer;
}

// The answer to a command, which has the type R, or why there is none.
template <class R, class C>
Task<std::expected<R, Refused>> tell(Context& context, C&& command) {
  return expect<R>(context, context.submit(Command(std::forward<C>(command))));
}

// One more row than asked for tells that there is a next page: its cursor is `id` of the last one shown.
template <class T, class IdOf>
[[nodiscard]] std::optional<std::string> cut_page(std::vector<T>& rows, std::size_t limit, IdOf id_of) {
  if (rows.size() <= limit) return std::nullopt;
  rows.resize(limit);
  return std::to_string(id_of(rows.back()));
}

// The id in a path; 0 when it is none.
[[nodiscard]] inline std::int64_t captured_id(const Request& request, std::size_t index = 0) {
  const auto id = to_integer(request.captures[index]);
  return id && *id > 0 ? *id : 0;
}

}  // namespace baton::http
