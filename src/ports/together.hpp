// Answers that leave together. Whoever is answered on another thread has to be woken, which costs more than the answer; while
// one of these lives on a thread, waking is put off to its end, so that many answers wake once.
#pragma once

#include <functional>
#include <map>
#include <utility>

namespace baton {

class Together {
 public:
  Together() : outer_(std::exchange(here_, this)) {}
  ~Together() {
    here_ = outer_;
    for (auto& [who, how] : put_off_) wake(who, std::move(how));
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  // At the end of the outermost one that lives on this thread, once for each `who`; otherwise at once.
  static void wake(const void* who, std::function<void()> how) {
    if (here_)
      here_->put_off_.try_emplace(who, std::move(how));
    else
      how();
  }

 private:
  inline static thread_local Together* here_ = nullptr;
  Together* const outer_;
  std::map<const void*, std::function<void()>> put_off_;
};

}  // namespace baton
