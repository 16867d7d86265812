// What handlers do with an answer of the engine or of the store: take it, or turn it into a problem.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/exchange.hpp"
#include "http/problem.hpp"

namespace baton::http {

[[nodiscard]] inline Response stopping() { return problem(503, "stopping", "the server is stopping"); }

template <class R>
Task<std::expected<R, Response>> expect(Call& call, std::shared_ptr<ReplyParcel> parcel) {
  Wait wait(call.exchange, parcel, Interruptible::no);
  const bool here = co_await wait;
  std::expected<R, Response> answer = std::unexpected(stopping());
  if (here) {
    Reply reply = parcel->take();
    if (const auto* refused = std::get_if<Refused>(&reply)) {
      answer = std::unexpected(problem(*refused));
    } else {
      answer = std::get<R>(std::move(reply));
    }
  }
  co_return answer;
}

// The answer to a command, which has the type R, or the problem that is the response.
template <class R, class C>
Task<std::expected<R, Response>> tell(Call& call, C&& command) {
  return expect<R>(call, call.submit(Command(std::forward<C>(command))));
}

// What was read, or the problem that is the response: of the store, or that there is no such thing.
template <class T>
std::expected<T, Response> found(Result<std::optional<T>> read, std::string_view code,
                                 std::string_view detail) {
  if (!read) return std::unexpected(problem(read.error()));
  if (!*read) return std::unexpected(problem(404, code, detail));
  return *std::move(*read);
}

// One more row than asked for tells that there is a next page: its cursor is `id` of the last one shown.
template <class T, class IdOf>
std::optional<std::string> cut_page(std::vector<T>& rows, std::size_t limit, IdOf id_of) {
  if (rows.size() <= limit) return std::nullopt;
  rows.resize(limit);
  return std::to_string(id_of(rows.back()));
}

}  // namespace baton::http
