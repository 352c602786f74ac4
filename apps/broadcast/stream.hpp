// A window of broadcasts from rank 0 to all others: batches until they are steady, then as long as the window lasts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/batches.hpp"
#include "elbowroom/broadcast.h"
#include "exchange/job.hpp"
#include "machine/machine.hpp"

namespace elbowroom::forwarding {

// The rank that forwards most: the first in every tree, by its priority.
inline constexpr int kInner = 1;

struct StreamWindow {
  program::BatchWindow batches;
  std::size_t size = 0;  // bytes of a broadcast
  bool corrupt = false;  // rank 0 sends other data than it announces, for tests
};

struct StreamReport {
  program::Batches batches;                 // of rank 0
  bool valid = true;                        // what arrived at any rank (rank 0), at this one (others)
  std::vector<std::int64_t> announcements;  // ns, when those of the batches came, and that of their end (others)
  elbow_broadcast_counters counters{};      // of this window
  std::int64_t broadcasts = 0;              // of data, in this window
};

// All ranks make one, and let one window follow the other. The calling thread makes the library's progress: it is the
// communication thread, and nothing else calls MPI meanwhile. Throws std::runtime_error where the library fails.
class Stream {
 public:
  Stream(const Job& job, std::string tree, std::size_t segment, int node);

  StreamReport lead(const StreamWindow& window);  // rank 0
  StreamReport follow();                          // others
  const Arena& memory() const { return memory_; }
  // Touches memory for broadcasts of this size.
  void use(std::size_t size);

 private:
  struct Header;
  elbow_broadcast_operation send(std::uint32_t context, const void* data, std::size_t size,
                                 const std::vector<elbow_broadcast_recipient>& recipients,
                                 const elbow_broadcast_way& way);
  elbow_broadcast_operation receive(std::uint32_t context, int root, void* data, std::size_t size);
  void wait(elbow_broadcast_operation operation, int kind);
  std::vector<elbow_broadcast_operation> receive_answers();
  void take_answers(const std::vector<elbow_broadcast_operation>& operations);
  void announce(const Header& header);
  std::int64_t send_batch(const Header& header, bool corrupt);
  void receive_batch(const Header& header);
  void answer();
  char* buffer(std::int64_t index) const;
  elbow_broadcast_counters counters() const;

  const Job& job_;
  std::string tree_;
  std::size_t segment_;
  std::vector<elbow_broadcast_recipient> others_;
  std::unique_ptr<elbow_broadcast, void (*)(elbow_broadcast*)> broadcast_;
  int node_;
  Arena memory_;
  std::size_t size_ = 0;
  bool valid_ = true;                  // what arrived in this window
  std::vector<std::int64_t> answers_;  // of the others: whether it was at theirs
};

}  // namespace elbowroom::forwarding
