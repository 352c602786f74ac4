// What an engine tells whoever records it: announcements along the edges of a tree, and when data are here and free again.
#pragma once

#include <cstdint>
#include <memory>

#include "message.hpp"

namespace elbowroom::broadcast {

// Data on their way through a rank.
struct Passage {
  Key key;
  Tree tree;
  unsigned stripes = 1;    // 2: two trees
  std::uint64_t size = 0;  // bytes
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void thread_started() = 0;                                             // that calls the others
  virtual void announced(int child, const Announcement& announcement) = 0;       // to a child
  virtual void was_announced(int parent, const Announcement& announcement) = 0;  // by a parent
  virtual void received(const Passage& passage) = 0;
  virtual void released(const Passage& passage) = 0;
};

// Records into the trace of this process (elbowroom/trace.h); null where there is none. libelbow_trace is looked up in the
// process: this library neither links nor needs it.
std::unique_ptr<Observer> make_trace_observer();

}  // namespace elbowroom::broadcast
