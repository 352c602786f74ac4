// This process' TCP sockets: which of them lead to another node, and the flow of each node that they lead to.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "nic/board.hpp"

namespace elbowroom::nic {

class Sockets {
 public:
  explicit Sockets(Board& board) : board_(board) {}
  // Before anything else; again in a process that fork made, which has flows of its own.
  void begin(int node);
  // The flows of this process end.
  void end();

  void listens(int file);
  void connects(int file, const sockaddr* address);
  // What the descriptor was is over; it may be something else next.
  void forget(int file);
  // epoll reports an edge once only: a send on this socket must not be refused.
  void watched_by_edges(int file);
  bool by_edges(int file) const;

  // The node that the descriptor leads to; kNobody where what it sends is not limited.
  int target_of(int file);
  // Of this process to a node; -1 if there are too many.
  int flow_to(int target);

 private:
  static constexpr int kFiles = 65536;  // descriptors above are not limited

  void enter(int file, std::uint16_t peer);
  std::uint8_t look_at(int file);

  Board& board_;
  int node_ = 0;
  std::array<std::atomic<int>, kNodes> flows_{};  // number + 1; 0: none yet
  std::array<std::atomic<std::uint8_t>, kFiles> kinds_{};
  std::array<std::atomic<std::uint8_t>, kFiles> notes_{};
  std::array<std::atomic<std::uint32_t>, kFiles> entered_{};  // key of the connection on the board
};

}  // namespace elbowroom::nic
