#include "http/wire/subscriptions.hpp"

namespace baton::http {

namespace {

// Neither tenants nor ids have this byte.
constexpr char separator = '\n';

constexpr std::size_t resumed_at_once = 64;
constexpr std::size_t told_at_once = 10'000;  // changes

struct Signal final : Awaited {};

std::string_view tenant_of(std::string_view topic) { return topic.substr(1, topic.find(separator) - 1); }

std::string topic(char kind, std::string_view tenant, std::string_view id) {
  std::string text;
  put_topic(text, kind, tenant, id);
  return text;
}

}  // namespace

void put_topic(std::string& topic, char kind, std::string_view tenant, std::string_view id) {
  topic.clear();
  topic.reserve(2 + tenant.size() + id.size());
  topic += kind;
  topic.append(tenant) += separator;
  topic += id;
}

std::string tenant_topic(std::string_view tenant) { return topic(tenant_kind, tenant, ""); }
std::string queues_topic(std::string_view tenant) { return topic(queues_kind, tenant, ""); }
std::string subject_topic(Subject::Type subject, std::string_view tenant, std::string_view id) {
  return topic(topic_kind(subject), tenant, id);
}
std::string batches_topic(std::string_view tenant, std::int64_t runbook_id) {
  return topic(batches_kind, tenant, std::to_string(runbook_id));
}

Subscriber::~Subscriber() {
  for (const std::string& topic : topics_) all_.remove(topic, *this);
}

void Subscriber::listen(std::string topic) {
  if (listens_to(topic)) return;
  all_.add(topic, *this);
  if (topics_.empty()) heard_ = all_.position_;  // also if the others are still told of it
  topics_.insert(std::move(topic));
}

Task<bool> Subscriber::sleep(WaitState& wait_state, SteadyTime until) {
  waiting_ = std::make_shared<Signal>();
  deadline_ = all_.deadlines_.emplace(until, this);
  if (deadline_ == all_.deadlines_.begin()) all_.expire_at_(until);
  Wait wait(wait_state, waiting_, Interruptible::when_stopping);
  const bool here = co_await wait;
  waiting_.reset();
  if (deadline_ != all_.deadlines_.end()) all_.deadlines_.erase(deadline_);
  co_return here;
}

Task<Subscriber::Woken> Subscriber::wait(WaitState& wait_state, SteadyTime until) {
  if (!woken_) {
    const bool here = co_await sleep(wait_state, until);
    if (!here) co_return Woken::by_interrupt;
  }
  co_return std::exchange(woken_, false) ? Woken::by_change : Woken::by_time;
}

Task<bool> Subscriber::rest(WaitState& wait_state, SteadyTime until) {
  rests_ = true;
  const bool here = co_await sleep(wait_state, until);
  rests_ = false;
  co_return here;
}

LongWait::LongWait(Context& context, std::int64_t wait_ms, const std::string& topic)
    : Subscriber(*context.services.subscriptions),
      wait_state_(context.wait_state),
      until_(std::chrono::steady_clock::now() + std::chrono::milliseconds{wait_ms}),
      waits_(wait_ms > 0) {
  if (waits_) listen(topic);
}

bool LongWait::is_over() const {
  return !waits_ || wait_state_.stopping || wait_state_.over || std::chrono::steady_clock::now() >= until_;
}

Task<bool> LongWait::wait() {
  if (is_over()) co_return false;
  has_waited_ = true;
  const Woken woken = co_await Subscriber::wait(wait_state_, until_);
  co_return woken == Woken::by_change;
}

Task<bool> LongWait::wait_after(const Error& error) {
  const bool passes = error.code == Code::unavailable || error.code == Code::busy;
  if (!passes || !has_waited_ || is_over()) co_return false;
  const bool here =
      co_await rest(wait_state_, std::chrono::steady_clock::now() + std::chrono::milliseconds{100});
  co_return here;
}

void Subscriptions::add(const std::string& topic, Subscriber& subscriber) {
  by_topic_[topic].push_back(&subscriber);
  ++by_tenant_.try_emplace(std::string(tenant_of(topic))).first->second;
  if (subscription_) return;
  // First the wake, then the position: what is published between the two is read, not missed.
  subscription_ = feed_.subscribe([this] { go_on_soon(); });
  position_ = feed_.last();
}

void Subscriptions::remove(const std::string& topic, Subscriber& subscriber) {
  const auto it = by_topic_.find(topic);
  std::erase(it->second, &subscriber);
  if (it->second.empty()) by_topic_.erase(it);
  const auto tenant = by_tenant_.find(tenant_of(topic));
  if (--tenant->second == 0) by_tenant_.erase(tenant);
  if (!by_topic_.empty()) return;
  subscription_.reset();
  telling_.reset();
}

void Subscriptions::read() {
  read_wanted_ = false;
  if (subscription_) read_records();
  resume_woken();
}

void Subscriptions::read_records() {
  std::size_t left = told_at_once;
  if (telling_ && !go_on_telling(left)) return go_on_soon();
  const auto records = feed_.after(position_);
  if (!records) {
    position_ = feed_.last();
    return tell_missed();
  }
  for (const Record& record : *records) {
    if (left == 0) return go_on_soon();
    position_ = record->number;
    telling_.emplace(record, Changes::Reader(record->changes));
    if (!record->untold.empty()) tell_untold(record);
    if (!go_on_telling(left)) return go_on_soon();
  }
}

void Subscriptions::go_on_soon() {
  if (!read_wanted_.exchange(true)) read_soon_();
}

bool Subscriptions::go_on_telling(std::size_t& left) {
  Telling& now = *telling_;
  for (baton::Change change; left > 0 && now.reader.next(change); --left) {
    if (change.subject == Subject::Type::runbook) follow_versions(change);
    // Who listens has been told of this record already.
    const baton::Change before = std::exchange(now.before, change);
    const bool is_same = change.subject == before.subject && change.id == before.id &&
                         change.tenant == before.tenant &&
                         (change.runbook_id == 0 || change.runbook_id == before.runbook_id);
    if (is_same || !by_tenant_.contains(change.tenant)) continue;
    each_topic(change, topic_, [&](const std::string& topic) { tell(topic, now.record); });
  }
  if (now.reader.bytes_left() > 0) return false;
  telling_.reset();
  return true;
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
    if (each->heard_ >= record->number) continue;
    each->heard_ = record->number;
    each->hear(record);
    wake(*each);
  }
}

// Too much changed of these tenants to say what: whoever listens has to look.
void Subscriptions::tell_untold(const Record& record) {
  for (const auto& [topic, subscribers] : by_topic_)
    if (record->untold.contains(tenant_of(topic))) tell(topic, record);
}

void Subscriptions::tell_missed() {
  for (const auto& [topic, subscribers] : by_topic_) {
    for (Subscriber* each : subscribers) {
      each->miss();
      wake(*each);
    }
  }
}

void Subscriptions::wake(Subscriber& subscriber) {
  if (std::exchange(subscriber.woken_, true)) return;
  if (subscriber.waiting_ && !subscriber.rests_) woken_.push_back(subscriber.waiting_);
}

void Subscriptions::resume_woken() {
  for (std::size_t i = 0; i < resumed_at_once && !woken_.empty(); ++i) {
    const auto next = std::move(woken_.front());
    woken_.pop_front();
    next->arrive();
  }
  if (!woken_.empty()) go_on_soon();
}

void Subscriptions::expire(SteadyTime now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Subscriber& subscriber = *deadlines_.begin()->second;
    subscriber.deadline_ = deadlines_.end();
    woken_.push_back(subscriber.waiting_);
    deadlines_.erase(deadlines_.begin());
  }
  if (!deadlines_.empty()) expire_at_(deadlines_.begin()->first);
  resume_woken();
}

}  // namespace baton::http
