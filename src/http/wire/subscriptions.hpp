// Who waits for changes: long waits for one subject, and streams. Belongs to the I/O thread.
//
// Each record of the feed is read once, however many wait, and each change is looked up by its topics, so
// that a waiter costs nothing until something changes that it waits for. While nobody waits, the feed does
// not wake this thread.
//
// Nobody else is held up: of what many changes make, and of those that are woken, a bounded part is done at a
// time, and requests get their turn between the parts.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "http/wire/context.hpp"
#include "ports/feed.hpp"

namespace baton::http {

using SteadyTime = std::chrono::steady_clock::time_point;

// A topic names what can be waited for. The tenant is part of it, so that nobody hears of another's.
[[nodiscard]] std::string tenant_topic(std::string_view tenant);  // everything of it
[[nodiscard]] std::string queues_topic(std::string_view tenant);  // all its queues
[[nodiscard]] std::string subject_topic(Subject::Type subject, std::string_view tenant, std::string_view id);
[[nodiscard]] std::string batches_topic(std::string_view tenant, std::int64_t runbook_id);  // of one version of a runbook

// Writes a topic over what is there: a text that is used again costs nothing.
inline constexpr char tenant_kind = '*', queues_kind = 'q', batches_kind = 'b';
[[nodiscard]] constexpr char topic_kind(Subject::Type subject) {
  return static_cast<char>('0' + static_cast<int>(subject));
}
void put_topic(std::string& topic, char kind, std::string_view tenant, std::string_view id);

class Subscriptions;

// One that waits. It hears of every record with a change of its topics, from the moment on that it listens.
class Subscriber {
 public:
  explicit Subscriber(Subscriptions& all) : all_(all) {}
  virtual ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  void listen(std::string topic);

  enum class Woken { by_change, by_time, by_interrupt };
  // By a change also when it came before this call and after the last wait.
  Task<Woken> wait(WaitState& wait_state, SteadyTime until);
  // Until then, whatever changes; with a time that is over, others get their turn. False: interrupted.
  Task<bool> rest(WaitState& wait_state, SteadyTime until);

 protected:
  // Records that it might want are gone before anybody read them.
  virtual void miss() {}
  virtual void hear(const Record&) {}
  [[nodiscard]] Subscriptions& all() const { return all_; }
  [[nodiscard]] bool listens_to(const std::string& topic) const { return topics_.contains(topic); }

 private:
  friend class Subscriptions;
  Task<bool> sleep(WaitState& wait_state, SteadyTime until);
  Subscriptions& all_;
  std::unordered_set<std::string> topics_;  // a runbook's stream has one for each version
  std::shared_ptr<Awaited> waiting_;
  std::multimap<SteadyTime, Subscriber*>::iterator deadline_;
  std::int64_t heard_ = 0;  // number of the last record that it heard of or was too late for, so that each is told once
  bool woken_ = false;
  bool rests_ = false;
};

// A long wait for one subject: look, wait(), look again. It listens before the first look, so that nothing that
// happens after a look is missed.
class LongWait final : public Subscriber {
 public:
  // wait_ms 0: never waits, and costs nothing.
  LongWait(Context& context, std::int64_t wait_ms, const std::string& topic);
  // Whether to look again; false: the time is over, or nobody waits any more.
  Task<bool> wait();
  // The same after a look that failed. When many are woken at once, some find no place among the reads: who
  // has waited already looks again a little later.
  Task<bool> wait_after(const Error& error);

 private:
  [[nodiscard]] bool is_over() const;
  WaitState& wait_state_;
  SteadyTime until_;
  bool waits_;
  bool has_waited_ = false;
};

class Subscriptions {
 public:
  // read_soon: from any thread, has read() called on the I/O thread. expire_at: has expire() called then.
  Subscriptions(Feed& feed, std::function<void()> read_soon, std::function<void(SteadyTime)> expire_at)
      : feed_(feed), read_soon_(std::move(read_soon)), expire_at_(std::move(expire_at)) {}

  [[nodiscard]] Feed& feed() { return feed_; }
  // Of the last record of which everybody was told.
  [[nodiscard]] std::int64_t position() const { return telling_ ? telling_->record->number - 1 : position_; }
  void read();
  void expire(SteadyTime now);

 private:
  friend class Subscriber;
  void add(const std::string& topic, Subscriber& subscriber);
  // What is being told of: a record may have more changes than are told at a time.
  struct Telling {
    Record record;
    Changes::Reader reader;
    baton::Change before{};
  };
  void read_records();
  void remove(const std::string& topic, Subscriber& subscriber);
  // False: the record has more changes than may still be told.
  [[nodiscard]] bool go_on_telling(std::size_t& left);
  void tell(const std::string& topic, const Record& record);
  void follow_versions(const baton::Change& runbook);
  void tell_untold(const Record& record);
  void tell_missed();
  void wake(Subscriber& subscriber);
  void resume_woken();
  void go_on_soon();

  Feed& feed_;
  const std::function<void()> read_soon_;
  const std::function<void(SteadyTime)> expire_at_;
  std::unordered_map<std::string, std::vector<Subscriber*>> by_topic_;
  std::map<std::string, std::size_t, std::less<>> by_tenant_;  // how many listen to something of it
  std::multimap<SteadyTime, Subscriber*> deadlines_;
  std::deque<std::shared_ptr<Awaited>>
      woken_;          // resumed when everybody has been told: they come and go meanwhile
  std::string topic_;  // of the change that is looked at
  std::optional<Telling> telling_;
  std::int64_t position_ = 0;  // of the record that is or was told last
  std::atomic<bool> read_wanted_{false};
  std::unique_ptr<Feed::Subscription> subscription_;  // while anybody waits; the last member, so that it ends first
};

// The topics of a change, each put into `topic` and given to `fn`.
template <class Fn>
void each_topic(const baton::Change& change, std::string& topic, Fn&& fn) {
  put_topic(topic, topic_kind(change.subject), change.tenant, change.id);
  fn(topic);
  if (change.subject == Subject::Type::queue) {
    put_topic(topic, queues_kind, change.tenant, "");
    fn(topic);
  }
  if (change.subject == Subject::Type::batch && change.runbook_id != 0) {
    put_topic(topic, batches_kind, change.tenant, std::to_string(change.runbook_id));
    fn(topic);
  }
  put_topic(topic, tenant_kind, change.tenant, "");
  fn(topic);
}

}  // namespace baton::http
