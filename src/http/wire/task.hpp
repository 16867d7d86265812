// The coroutine types of this folder. They know nothing of Asio, so that handlers compile without it.
//
// A Task starts at once on the caller's stack and, when it had to wait, resumes whoever awaits it at its end.
// Because nothing is started lazily, a loop of tasks that never wait does not grow the stack, in debug builds
// neither. All of them live on the server's one I/O thread.
//
// g++ 12 destroys some temporaries of an awaited expression twice (closures, converted arguments): give them
// a name first.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace baton::http {

template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::optional<T> value;
    std::exception_ptr error;
    std::coroutine_handle<> awaiting;

    Task get_return_object() { return Task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Resume {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          return self.promise().awaiting ? self.promise().awaiting : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return Resume{};
    }
    void return_value(T result) { value.emplace(std::move(result)); }
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  [[nodiscard]] bool await_ready() const { return handle_.done(); }
  void await_suspend(std::coroutine_handle<> awaiting) { handle_.promise().awaiting = awaiting; }
  T await_resume() {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return std::move(*handle_.promise().value);
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// A coroutine that nobody awaits: it owns itself and must catch its own exceptions.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    [[noreturn]] void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace baton::http
