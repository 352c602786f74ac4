// This process and what it knows of the emulated NIC; nullptr before it is known that it is limited, and where it is not.
#pragma once

#include "nic/board.hpp"
#include "nic/settings.hpp"
#include "nic/sockets.hpp"
#include "nic/transfers.hpp"

namespace elbowroom::nic {

struct Process {
  Settings settings;
  Board board;
  Sockets sockets{board};
  Transfers transfers;
};

Process* limited();

}  // namespace elbowroom::nic
