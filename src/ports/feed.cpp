#include "ports/feed.hpp"

#include <algorithm>
#include <map>

namespace baton {
namespace {

// A change is: its flags; subject, tenant and id unless they are those of the change before; what; then what the
// flags say is there. Texts and numbers have a variable length.
enum Flag : std::uint8_t {
  same_subject = 1,
  has_status = 2,
  has_node = 4,
  has_workflow = 8,
  has_version = 16,
  has_runbook = 32,
};

void put_number(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

std::uint64_t take_number(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

std::string_view take_text(std::string_view& rest) {
  const std::size_t size = take_number(rest);
  const std::string_view text = rest.substr(0, size);
  rest.remove_prefix(size);
  return text;
}

}  // namespace

Changes::Range Changes::put(std::string_view text) {
  put_number(data_, text.size());
  const Range range{data_.size(), text.size()};
  data_ += text;
  return range;
}

void Changes::add(const Change& change) {
  const bool same =
      count_ > 0 && subject_ == change.subject && is(id_, change.id) && is(tenant_, change.tenant);
  int flags = same ? same_subject : 0;
  if (!change.status.empty()) flags |= has_status;
  if (!change.node.empty()) flags |= has_node;
  if (!change.workflow_id.empty()) flags |= has_workflow;
  if (change.version != 0) flags |= has_version;
  if (change.runbook_id != 0) flags |= has_runbook;
  data_ += static_cast<char>(flags);
  if (!same) {
    data_ += static_cast<char>(change.subject);
    subject_ = change.subject;
    tenant_ = put(change.tenant);
    id_ = put(change.id);
  }
  (void)put(change.what);
  if (flags & has_status) (void)put(change.status);
  if (flags & has_node) (void)put(change.node);
  if (flags & has_workflow) (void)put(change.workflow_id);
  if (flags & has_version) put_number(data_, static_cast<std::uint64_t>(change.version));
  if (flags & has_runbook) put_number(data_, static_cast<std::uint64_t>(change.runbook_id));
  ++count_;
}

bool Changes::Reader::next(Change& change) {
  if (rest_.empty()) return false;
  const int flags = rest_.front();
  rest_.remove_prefix(1);
  Change read;
  if (flags & same_subject) {
    read.subject = last_.subject, read.tenant = last_.tenant, read.id = last_.id;
  } else {
    read.subject = static_cast<Subject::Type>(rest_.front());
    rest_.remove_prefix(1);
    read.tenant = take_text(rest_);
    read.id = take_text(rest_);
  }
  read.what = take_text(rest_);
  if (flags & has_status) read.status = take_text(rest_);
  if (flags & has_node) read.node = take_text(rest_);
  if (flags & has_workflow) read.workflow_id = take_text(rest_);
  if (flags & has_version) read.version = static_cast<std::int64_t>(take_number(rest_));
  if (flags & has_runbook) read.runbook_id = static_cast<std::int64_t>(take_number(rest_));
  last_ = change = read;
  return true;
}

namespace {

// A stream of a runbook has to learn of a new version, or it would not hear of that version's batches in later
// records. These changes are small and few, so they are told also of a tenant that is left out.
bool is_always_told(const Change& change) { return change.subject == Subject::Type::runbook; }

// Those that changed the most are left out, until the rest is small enough: one tenant's many changes are not
// another's loss.
void leave_out_most(CommitRecord& record, std::size_t bytes_max) {
  std::map<std::string, std::size_t, std::less<>> bytes;
  Changes::Reader reader(record.changes);
  Change change;
  for (std::size_t left = reader.bytes_left(); reader.next(change); left = reader.bytes_left()) {
    if (is_always_told(change)) continue;
    auto tenant = bytes.find(change.tenant);
    if (tenant == bytes.end()) tenant = bytes.emplace(change.tenant, 0).first;
    tenant->second += left - reader.bytes_left();
  }
  for (std::size_t all = record.changes.bytes(); all > bytes_max && !bytes.empty();) {
    const auto most = std::ranges::max_element(bytes, {}, [](const auto& each) { return each.second; });
    all -= most->second;
    record.untold.insert(most->first);
    bytes.erase(most);
  }
  Changes rest;
  for (Changes::Reader again(record.changes); again.next(change);)
    if (is_always_told(change) || !record.untold.contains(change.tenant)) rest.add(change);
  record.changes = std::move(rest);
}

}  // namespace

void Feed::publish(CommitRecord record) {
  if (record.changes.bytes() > limits_.record_bytes_max) leave_out_most(record, limits_.record_bytes_max);
  record.changes.trim();  // it is kept for long
  auto kept = std::make_shared<const CommitRecord>(std::move(record));
  const std::scoped_lock lock(mutex_);
  last_ = kept->number;
  bytes_ += kept->changes.bytes_held() + sizeof(CommitRecord);
  records_.push_back(std::move(kept));
  while (bytes_ > limits_.bytes_max || records_.size() > limits_.records_max) {
    gone_ = records_.front()->number;
    bytes_ -= records_.front()->changes.bytes_held() + sizeof(CommitRecord);
    records_.pop_front();
  }
  for (const auto& wake : wakes_) wake();
}

std::int64_t Feed::last() const {
  const std::scoped_lock lock(mutex_);
  return last_;
}

bool Feed::reaches(std::int64_t number) const {
  const std::scoped_lock lock(mutex_);
  return number >= gone_;
}

std::optional<std::vector<Record>> Feed::after(std::int64_t number) const {
  const std::scoped_lock lock(mutex_);
  if (number < gone_) return std::nullopt;
  const auto first =
      std::ranges::upper_bound(records_, number, {}, [](const Record& record) { return record->number; });
  return std::vector<Record>(first, records_.end());
}

std::unique_ptr<Feed::Subscription> Feed::subscribe(std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  return std::unique_ptr<Subscription>(new Subscription(*this, wakes_.insert(wakes_.end(), std::move(wake))));
}

std::size_t Feed::subscriptions() const {
  const std::scoped_lock lock(mutex_);
  return wakes_.size();
}

Feed::Subscription::~Subscription() {
  const std::scoped_lock lock(feed_.mutex_);
  feed_.wakes_.erase(place_);
}

}  // namespace baton
