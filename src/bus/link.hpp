// One end of a link, as a connection sees it: what proton tells of it.
#pragma once

#include <proton/engine.h>

namespace baton::bus {

class Link {
 public:
  virtual ~Link() = default;
  virtual void on_flow() {}
  virtual void on_delivery(pn_delivery_t*) {}
  virtual void on_tick() {}
  virtual void flush() {}   // what came in is handled: what was collected of it goes on together; after Client::flush_later()
  virtual void on_end() {}  // the client's doing, or the connection's; proton's link is there still
  virtual void on_close() { on_end(); }  // ours: what was put on the link leaves before we close it
  // When we are to leave: whether there is nothing to wait for, and what is said last.
  [[nodiscard]] virtual bool is_idle() const { return true; }
  virtual void on_goodbye() {}
};

}  // namespace baton::bus
