// The log of the truth (ELBOW_NIC_LOG): what each process sent between nodes, and when the NICs were busy with it.
//
// One file per process, `rank-RRRRRR-PID.nic`: a header, then a record for each grant, all little endian. It is written as
// the bytes are sent, so that it survives a process that is killed. src/elbowroom/profile/transfers.py reads it.
#pragma once

#include <cstdint>

#include "nic/settings.hpp"

namespace elbowroom::nic {

constexpr char kTransfersMagic[8] = {'E', 'L', 'B', 'N', 'I', 'C', '0', '1'};

struct TransfersHeader {
  char magic[8];
  std::int32_t rank;
  std::int32_t node;
  std::int64_t process;
  double bandwidth;  // bytes/s
  double burst;      // bytes
};
static_assert(sizeof(TransfersHeader) == 40);

// Bytes on the way from `began_ns`, when they were first wanted, to `ended_ns` (CLOCK_MONOTONIC). The egress of `source` and
// the ingress of `target` carried them.
struct Transfer {
  std::uint64_t began_ns;
  std::uint64_t ended_ns;
  std::uint64_t bytes;
  std::int32_t source;
  std::int32_t target;
};
static_assert(sizeof(Transfer) == 32);

class Transfers {
 public:
  // Nothing is written without a folder. A folder or file that cannot be made is an error: std::system_error.
  void open(const Settings& settings);
  void add(const Transfer& transfer) const;
  // Of a process that fork made.
  void forget() { file_ = -1; }

 private:
  int file_ = -1;
};

}  // namespace elbowroom::nic
