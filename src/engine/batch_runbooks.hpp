// How a message about runbooks is decided: whatever it lacks is noted, and the batch is decided again.
#pragma once

#include "engine/batch.hpp"

namespace baton::engine {

// False: it could not be decided now; it will be, when the batch is decided again with what it needs.
template <class Decide>
bool Writer::Batch::with_ledger(Decide&& decide, std::string& unreadable) {
  try {
    decide();
    return true;
  } catch (const runbook::NotLoaded& missing) {
    runbooks_missing_ = true;
    lessons_.needs.insert(missing.needs.begin(), missing.needs.end());
  } catch (const runbook::NoIds& none) {
    runbooks_missing_ = true;
    ids_wanted_.insert(none.table);
  } catch (const runbook::Unreadable& problem) {
    runbooks_missing_ = true;  // rows may be half changed
    unreadable = problem.message;
  }
  return false;
}

template <class Decide>
Reply Writer::Batch::runbook_reply(Decide&& decide) {
  if (const auto it = lessons_.unreadable.find(item_index_); it != lessons_.unreadable.end())
    return Refused{Refusal::runbook_unreadable, it->second, {}};
  Reply reply;
  std::string unreadable;
  if (!with_ledger([&] { reply = decide(); }, unreadable) && !unreadable.empty())
    lessons_.unreadable.emplace(item_index_, std::move(unreadable));
  return reply;
}

}  // namespace baton::engine
