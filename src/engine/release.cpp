// What follows from a commit, performed once it is durable. Matching has expected it.
#include "engine/writer.hpp"
#include "ports/together.hpp"

namespace baton::engine {

void Writer::perform(Effects effects) {
  const Time now = clock_.now();
  const Together answers;
  // The feed is first: a stream that is opened after an answer does not tell what was answered as news.
  for (Effect& effect : effects)
    if (auto* changed = std::get_if<Changed>(&effect)) tell_feed(std::move(*changed));
  for (Effect& effect : effects)
    std::visit(overloaded{
                   [](Answer& e) { e.waiter->deliver(std::move(e.reply)); },
                   [&](Await& e) { matching_.begin_wait(e); },
                   [&](Ended& e) { matching_.tell_end(e); },
                   [&](ServePoll& e) { give_back(matching_.answer_poll(std::move(e))); },
                   [](Enqueue&) {},  // matching has expected it, and the next one
                   [](MatchAgain&) {},
                   [&](MatchAllAt& e) { match_all_at_ = match_all_at_.value_or(e.at); },
                   [&](WorkerBeat& e) { matching_.workers().beat(e.tenant, e.worker, e.task_ids, e.lease_until, now); },
                   [&](WorkerReported& e) {
                     matching_.workers().reported(e.tenant, e.worker, e.task_id, e.completed, now);
                   },
                   [&](Warn& e) { warn(e); },
                   [](Changed&) {},
                   [](OfKind& e) { e.kind->perform(std::move(e.what)); },
                   [](Count& e) { e.counter->add(e.n); },
               },
               effect);
}

void Writer::warn(const Warn& warning) {
  constexpr std::size_t warned_max = 10'000;
  if (warned_.size() >= warned_max) warned_.clear();
  if (warned_.insert(warning.about).second && options_.unreadable) options_.unreadable(warning.text);
}

// Of what is not stored these hold all the same.
void Writer::warn_of(const Effects& effects) {
  for (const Effect& effect : effects)
    if (const auto* warning = std::get_if<Warn>(&effect)) warn(*warning);
}

}  // namespace baton::engine
