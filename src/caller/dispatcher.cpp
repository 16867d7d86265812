#include "caller/dispatcher.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace baton::caller {
namespace {

using Steady = std::chrono::steady_clock;

constexpr Duration patience_at_the_end{2'000};  // for storing what is known

// What the engine's and the caller's threads tell.
struct Mail {
  std::vector<DueCall> scheduled;
  bool is_place_given_back = false;
  std::vector<std::pair<Ticket, Reply>> answers;
  std::vector<std::pair<Ticket, OutgoingResult>> results;
  [[nodiscard]] bool empty() const {
    return scheduled.empty() && !is_place_given_back && answers.empty() && results.empty();
  }
};

}  // namespace

struct Dispatcher::State final : DispatchActions, std::enable_shared_from_this<State> {
  State(Inbox& i, const Clock& c, Caller& k, OpenReads r, const Followed& f, metrics::Registry& m,
        std::shared_ptr<Places> p, DispatchOptions o)
      : inbox(i),
        clock(c),
        caller(k),
        open_reads(std::move(r)),
        followed(f),
        metrics(m),
        places(std::move(p)),
        options(std::move(o)) {}

  void ask(Ticket ticket, Command command) override;
  void send(Ticket ticket, const call::Destination& destination, OutgoingRequest request) override;
  Result<CallReads*> reads() override;
  void drop_reads() override { connection.reset(); }
  std::int64_t shown() const override { return followed.shown(); }
  void run();
  void tell(Dispatch& dispatch, Mail news) const;
  template <class Put>
  void post(Put&& put) {
    {
      const std::scoped_lock lock(mutex);
      put(mail);
    }
    wake.notify_one();
  }

  Inbox& inbox;
  const Clock& clock;
  Caller& caller;
  const OpenReads open_reads;
  const Followed& followed;
  metrics::Registry& metrics;
  const std::shared_ptr<Places> places;
  const DispatchOptions options;
  std::thread thread;
  std::unique_ptr<Reads> connection;  // of the thread

  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  Mail mail;
};

void Dispatcher::State::ask(Ticket ticket, Command command) {
  struct Answer final : Waiter {
    Answer(std::shared_ptr<State> s, Ticket t) : state(std::move(s)), ticket(t) {}
    void deliver(Reply reply) override {
      state->post([&](Mail& to) { to.answers.emplace_back(ticket, std::move(reply)); });
    }
    std::shared_ptr<State> state;
    Ticket ticket;
  };
  inbox.submit(std::move(command), std::make_shared<Answer>(shared_from_this(), ticket));
}

void Dispatcher::State::send(Ticket ticket, const call::Destination& destination, OutgoingRequest request) {
  caller.send(destination.tenant.value, destination.origin, std::move(request),
              [self = shared_from_this(), ticket](OutgoingResult result) {
                self->post([&](Mail& to) { to.results.emplace_back(ticket, std::move(result)); });
              });
}

void Dispatcher::State::tell(Dispatch& dispatch, Mail news) const {
  for (DueCall& each : news.scheduled) dispatch.scheduled(std::move(each), clock.now());
  for (auto& [ticket, result] : news.results) dispatch.ended(ticket, result);
  for (auto& [ticket, reply] : news.answers) dispatch.answered(ticket, std::move(reply), clock.now());
}

Result<CallReads*> Dispatcher::State::reads() {
  if (!connection) {
    TRY_ASSIGN(connection, open_reads());
  }
  return connection.get();
}

void Dispatcher::State::run() {
  Dispatch dispatch(*this, metrics, places, options);
  const auto began = Steady::now();
  const auto uptime = [&] { return std::chrono::duration_cast<Duration>(Steady::now() - began); };
  std::optional<Duration> give_up_at;
  bool is_caller_stopped = false;
  std::unique_lock lock(mutex);
  while (true) {
    if (stopping && !give_up_at) {
      give_up_at = uptime() + options.patience;
      dispatch.begin_no_more();
    }
    Mail news = std::exchange(mail, {});
    lock.unlock();
    tell(dispatch, std::move(news));
    Duration wait = dispatch.step(clock.now(), uptime());
    if (give_up_at) {
      const bool is_over = dispatch.idle() || dispatch.engine_is_gone();
      if (is_over || (uptime() >= *give_up_at && is_caller_stopped)) {
        if (dispatch.open() > 0 && options.log)
          options.log(std::to_string(dispatch.open()) +
                      " service calls are still under way and are left to the next server");
        return;
      }
      if (uptime() >= *give_up_at) {
        caller.stop();  // what has not left is known to have failed, and that is still stored
        is_caller_stopped = true;
        give_up_at = uptime() + patience_at_the_end;
        wait = {};
      }
      wait = std::min(wait, *give_up_at - uptime());
    }
    lock.lock();
    wake.wait_for(lock, wait, [&] { return !mail.empty() || (stopping && !give_up_at); });
  }
}

// --- from outside

Dispatcher::Dispatcher(Inbox& inbox, const Clock& clock, Caller& caller, OpenReads open_reads, const Followed& followed,
                       metrics::Registry& metrics, std::shared_ptr<Places> places, DispatchOptions options)
    : state_(std::make_shared<State>(inbox, clock, caller, std::move(open_reads), followed, metrics, std::move(places),
                                     std::move(options))) {
  state_->places->when_given_back([to = std::weak_ptr(state_)] {
    if (const auto state = to.lock()) state->post([](Mail& mail) { mail.is_place_given_back = true; });
  });
}

Dispatcher::~Dispatcher() { stop(); }

void Dispatcher::start() {
  state_->thread = std::thread([state = state_] { state->run(); });
}

void Dispatcher::stop() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
    state_->wake.notify_one();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

void Dispatcher::scheduled(std::vector<DueCall> calls) {
  state_->post([&](Mail& to) {
    if (to.scheduled.empty())
      to.scheduled = std::move(calls);
    else
      std::ranges::move(calls, std::back_inserter(to.scheduled));
  });
}

}  // namespace baton::caller
