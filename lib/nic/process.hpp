// This process and what it knows of the emulated NIC.
#pragma once

#include <sys/types.h>

#include "nic/board.hpp"
#include "nic/settings.hpp"
#include "nic/sockets.hpp"
#include "nic/transfers.hpp"

namespace elbowroom::nic {

struct Process {
  pid_t number = 0;
  Settings settings;
  Board board;
  Sockets sockets{board};
  Transfers transfers;
};

// nullptr before it is known that this process is limited, where it is not, and in a child of vfork, whose descriptors are
// its own while its memory is its parent's.
Process* limited();

}  // namespace elbowroom::nic
