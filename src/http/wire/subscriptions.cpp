#include "http/wire/subscriptions.hpp"

#include <algorithm>

namespace baton::http {

namespace {

// Neither tenants nor ids have this byte.
constexpr char separator = '\n';

struct Signal final : Awaited {};

std::string topic(char kind, std::string_view tenant, std::string_view id) {
  std::string text;
  text.reserve(2 + tenant.size() + id.size());
  text += kind;
  text += tenant;
  text += separator;
  text += id;
  return text;
}

}  // namespace

std::string tenant_topic(std::string_view tenant) { return topic('*', tenant, ""); }
std::string queues_topic(std::string_view tenant) { return topic('q', tenant, ""); }
std::string subject_topic(Subject::Type subject, std::string_view tenant, std::string_view id) {
  return topic(static_cast<char>('0' + static_cast<int>(subject)), tenant, id);
}
std::string batches_topic(std::string_view tenant, std::int64_t runbook_id) {
  return topic('b', tenant, std::to_string(runbook_id));
}

Subscriber::~Subscriber() {
  for (const std::string& topic : topics_) all_.remove(topic, *this);
}

void Subscriber::listen(std::string topic) {
  if (listens_to(topic)) return;
  all_.add(topic, *this);
  topics_.push_back(std::move(topic));
}

bool Subscriber::listens_to(const std::string& topic) const {
  return std::ranges::find(topics_, topic) != topics_.end();
}

Task<Subscriber::Woken> Subscriber::wait(WaitState& wait_state, SteadyTime until) {
  if (!woken_) {
    waiting_ = std::make_shared<Signal>();
    deadline_ = all_.deadlines_.emplace(until, this);
    if (deadline_ == all_.deadlines_.begin()) all_.expire_at_(until);
    Wait wait(wait_state, waiting_, Interruptible::when_stopping);
    const bool here = co_await wait;
    waiting_.reset();
    if (deadline_ != all_.deadlines_.end()) all_.deadlines_.erase(deadline_);
    if (!here) co_return Woken::by_interrupt;
  }
  co_return std::exchange(woken_, false) ? Woken::by_change : Woken::by_time;
}

LongWait::LongWait(Context& context, std::int64_t wait_ms, const std::string& topic)
    : Subscriber(*context.services.subscriptions),
      wait_state_(context.wait_state),
      until_(std::chrono::steady_clock::now() + std::chrono::milliseconds{wait_ms}),
      waits_(wait_ms > 0) {
  if (waits_) listen(topic);
}

Task<bool> LongWait::wait() {
  if (!waits_ || wait_state_.stopping || wait_state_.over) co_return false;
  const Woken woken = co_await Subscriber::wait(wait_state_, until_);
  co_return woken == Woken::by_change;
}

void Subscriptions::add(const std::string& topic, Subscriber& subscriber) {
  by_topic_[topic].push_back(&subscriber);
  if (subscription_) return;
  // First the wake, then the position: what is published between the two is read, not missed.
  subscription_ = feed_.subscribe([this] {
    if (!read_wanted_.exchange(true)) read_soon_();
  });
  position_ = feed_.last();
}

void Subscriptions::remove(const std::string& topic, Subscriber& subscriber) {
  const auto it = by_topic_.find(topic);
  std::erase(it->second, &subscriber);
  if (it->second.empty()) by_topic_.erase(it);
  if (by_topic_.empty()) subscription_.reset();
}

void Subscriptions::read() {
  read_wanted_ = false;
  if (!subscription_) return;
  if (const auto records = feed_.after(position_)) {
    for (const Record& record : *records) {
      position_ = record->number;
      tell(record);
    }
  } else {
    position_ = feed_.last();
    tell_all(nullptr);
  }
  resume_woken();
}

void Subscriptions::tell(const Record& record) {
  if (!record->is_whole) return tell_all(&record);
  Changes::Reader reader(record->changes);
  for (baton::Change change; reader.next(change);) {
    if (change.subject == Subject::Type::runbook) follow_versions(change);
    each_topic(change, [&](const std::string& topic) { tell(topic, record); });
  }
}

// A batch names the version of the runbook that it is of, not its name: who listens to a runbook hears of the
// batches of a new version too.
void Subscriptions::follow_versions(const baton::Change& runbook) {
  const auto it = by_topic_.find(subject_topic(Subject::Type::runbook, runbook.tenant, runbook.id));
  if (it == by_topic_.end()) return;
  for (Subscriber* each : std::vector(it->second)) each->listen(batches_topic(runbook.tenant, runbook.runbook_id));
}

void Subscriptions::tell(const std::string& topic, const Record& record) {
  const auto it = by_topic_.find(topic);
  if (it == by_topic_.end()) return;
  for (Subscriber* each : it->second) {
    if (std::exchange(each->heard_, record->number) == record->number) continue;
    each->hear(record);
    wake(*each);
  }
}

void Subscriptions::tell_all(const Record* record) {
  for (const auto& [topic, subscribers] : by_topic_) {
    for (Subscriber* each : subscribers) {
      if (record && std::exchange(each->heard_, (*record)->number) == (*record)->number) continue;
      record ? each->hear(*record) : each->miss();
      wake(*each);
    }
  }
}

void Subscriptions::wake(Subscriber& subscriber) {
  if (std::exchange(subscriber.woken_, true)) return;
  if (subscriber.waiting_) woken_.push_back(subscriber.waiting_);
}

void Subscriptions::resume_woken() {
  for (const auto& each : std::exchange(woken_, {})) each->arrive();
}

void Subscriptions::expire(SteadyTime now) {
  std::vector<std::shared_ptr<Awaited>> over;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Subscriber& subscriber = *deadlines_.begin()->second;
    subscriber.deadline_ = deadlines_.end();
    over.push_back(subscriber.waiting_);
    deadlines_.erase(deadlines_.begin());
  }
  for (const auto& each : over) each->arrive();
  if (!deadlines_.empty()) expire_at_(deadlines_.begin()->first);
}

}  // namespace baton::http
