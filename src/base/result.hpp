// Errors as values. A port returns Result<T>; a code exists only if some caller reacts to it.
#pragma once

#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>

namespace baton {

enum class Code {
  invalid,      // the caller's input is wrong; trying again will not help
  not_found,    // no such thing
  conflict,     // the thing is not in the state that the request needs
  unavailable,  // the store or a peer is away; trying again later may help; nothing was changed
  busy,         // another program has the store, or what it needs, for the moment; trying again soon helps; nothing was changed
  full,         // the disk or a quota is full; nothing was changed
  fenced,       // another writer has taken over; this one must stop
  corrupt,      // what is stored does not fit together; trying again will not help, and whoever writes must stop
  unknown,      // the connection broke inside a commit: it may or may not have happened
};

struct Error {
  Code code{};
  std::string message;
};

template <class T = void>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};

// For one of them that is for several types and, unlike `auto`, for no others.
template <class T, class... Types>
concept one_of = (std::same_as<T, Types> || ...);

#ifdef BATON_MUTANTS
// In the simulation a broken invariant is a finding, not the end of the process.
struct BrokenInvariant {
  std::string what;
};
[[noreturn]] inline void ensure_failed(const char* condition, const char*, int) {
  throw BrokenInvariant{condition};
}
#else
[[noreturn]] inline void ensure_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "baton: broken invariant: %s (%s:%d)\n", condition, file, line);
  std::abort();
}
#endif

}  // namespace baton

// For programmer errors only: on in release, never reachable from input.
#define ENSURE(condition) \
  (static_cast<bool>(condition) ? void(0) : ::baton::ensure_failed(#condition, __FILE__, __LINE__))

// Passes an error on to the caller: TRY(step()) for Result<>, TRY_ASSIGN(value, step()) for Result<T>.
#define BATON_CONCAT_(a, b) a##b
#define BATON_CONCAT(a, b) BATON_CONCAT_(a, b)
#define TRY(expression)                                     \
  do {                                                      \
    if (auto result_ = (expression); !result_) [[unlikely]] \
      return std::unexpected(std::move(result_).error());   \
  } while (false)
#define TRY_ASSIGN(declaration, expression) \
  TRY_ASSIGN_(BATON_CONCAT(result_, __LINE__), declaration, expression)
#define TRY_ASSIGN_(result, declaration, expression)   \
  auto result = (expression);                          \
  if (!result) [[unlikely]]                            \
    return std::unexpected(std::move(result).error()); \
  declaration = *std::move(result)
