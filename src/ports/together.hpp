// Answers that leave together. Whoever is answered on another thread has to be woken, which costs more than the answer; while
// one of these lives on a thread, waking is put off to its end, so that many answers wake once.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace baton {

class Together {
 public:
  Together() : outer_(std::exchange(here_, this)) {}
  ~Together() {
    here_ = outer_;
    for (const auto& each : put_off_) wake(each);
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  // At the end of the outermost one that lives on this thread, otherwise at once.
  static void wake(std::function<void()> who) {
    if (here_)
      here_->put_off_.push_back(std::move(who));
    else
      who();
  }

 private:
  inline static thread_local Together* here_ = nullptr;
  Together* const outer_;
  std::vector<std::function<void()>> put_off_;
};

}  // namespace baton
