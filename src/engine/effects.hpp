// What follows from a decision once it is durable. Deciding yields these as values; nothing outside the batch
// is touched before the commit, and a commit whose outcome is not known keeps them until it is. While a commit goes on
// beside the next decisions, matching knows what it will bring (Matching::expect), and tells nobody.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/metrics.hpp"
#include "engine/matching/queues.hpp"
#include "ports/commands.hpp"
#include "ports/feed.hpp"
#include "ports/store.hpp"
#include "ports/subject.hpp"

namespace baton::engine {

class Kind;

// A command and who hears its answer.
struct Item {
  Command command;
  std::shared_ptr<Waiter> waiter;
  Time received{};  // when it came in: no timer that is due later is decided before it
};

struct Answer {
  std::shared_ptr<Waiter> waiter;
  Reply reply;
};

// Answered when the subject has ended; at `until` its question is asked again, and then answered as things are.
struct Await {
  std::shared_ptr<Waiter> waiter;
  Subject subject;
  Time until{};
  Command question;
  bool created = false;  // the caller made it
  std::uint64_t expected = 0;  // matching has it under this id; 0: it has not
};
// Whoever awaits the subject hears this.
struct Ended {
  Subject subject;
  Reply reply;
};

// A poll is answered with what it was given.
struct ServePoll {
  QueueKey queue;
  std::uint64_t poll = 0;
  PollReply reply;
  std::optional<WaitingPoll> served;  // the poll itself, which does not wait any more
};
// Work that waits in a queue from now on.
struct Enqueue {
  QueueKey queue;
  std::set<WaitingTask> tasks;
};
// Queues in which work and workers were left to be matched: the next batch goes on with them.
struct MatchAgain {
  std::set<QueueKey> queues;
  std::optional<QueueKey> served_last;  // this one used up what a batch may hand out: the next batch begins behind it
};

struct WorkerBeat {
  Tenant tenant;
  std::string worker;
  std::vector<std::string> task_ids;  // all that it is running
  Time lease_until{};
};
struct WorkerReported {
  Tenant tenant;
  std::string worker;
  std::string task_id;
  bool completed = false;
};

// Work that could not be given, because of its rows, is looked at again then: somebody may repair them.
struct MatchAllAt {
  Time at{};
};

// A stored row cannot be worked with: whoever looks after the server is told, once for each subject. Unlike the other
// effects this is true whatever becomes of the commit, so it outlives a round that is decided again, and is performed
// also when nothing is committed.
struct Warn {
  Subject about;
  std::string text;
};

// What the commit changed, for the feed.
struct Changed {
  std::int64_t commit_number = 0;
  Changes changes;
};

// Something that only its kind understands and performs: mostly, somebody outside the engine is told.
struct OfKind {
  Kind* kind = nullptr;
  std::any what;
};

struct Count {
  metrics::Counter* counter = nullptr;
  std::size_t n = 0;
};

using Effect = std::variant<Answer, Await, Ended, ServePoll, Enqueue, MatchAgain, WorkerBeat, WorkerReported,
                            MatchAllAt, Warn, Changed, OfKind, Count>;
static_assert(std::is_nothrow_move_constructible_v<Effect>);  // or a list of them that grows copies every reply
using Effects = std::vector<Effect>;

}  // namespace baton::engine
