// What the processes of all jobs with one ELBOW_NIC_NAME share: the fluid, and which connections lead to which node.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

#include "nic/fluid.hpp"

namespace elbowroom::nic {

constexpr std::size_t kConnections = 16384;
constexpr int kNobody = -1;

// Instead of the other port: the socket listens. IPv4 and IPv6 have ports of their own.
constexpr std::uint16_t kListens4 = 0;
constexpr std::uint16_t kListens6 = 1;

// A TCP socket's end by its own port and the other's.
struct Connection {
  std::uint16_t port = 0;
  std::uint16_t peer = 0;

  std::uint32_t key() const { return std::uint32_t{port} << 16 | peer; }
  Connection reversed() const { return {peer, port}; }
};

// Where a process's end of a connection is.
struct Entry {
  std::uint32_t key;
  int owner;  // 0: the slot is free
  int node;
};

// In a file of this user that no other may open.
struct BoardMemory {
  std::uint32_t format;
  pthread_mutex_t mutex;
  Fluid fluid;
  std::array<Entry, kConnections> entries;
};

// No signal handler runs while its functions hold the lock of the memory, which all processes wait for.
class Board {
 public:
  // Attaches to the memory of this name, and makes it where there is none or those who used it have ended. Where it was
  // made with other settings, these hold (`nic`). Throws std::system_error, or std::runtime_error for memory that another
  // user or another release made.
  void attach(const std::string& name, const Nic& nic);
  // In a child of fork: from now on the memory is held by both processes, each for itself.
  void attach_again();
  // Removes the memory where nobody else uses it.
  void detach();
  Nic nic() const;

  // -1 if there are too many.
  int open_flow(int source, int target);
  void close_flow(int flow);
  Grant take(int flow, std::size_t wanted);
  void give_back(int flow, std::size_t bytes);

  // Says on which node this process' end is.
  void enter(Connection connection, int node);
  void leave(Connection connection);
  // The node of a connection's end that its process entered, or kNobody.
  int node_of(Connection connection) const;

 private:
  bool try_attach(const std::string& path, const Nic& nic);

  BoardMemory* memory_ = nullptr;
  std::string path_;  // as shm_open takes it
  int file_ = -1;
  pid_t holder_ = 0;  // the process whose lock on the file is that of `file_`
};

std::int64_t now_ns();

}  // namespace elbowroom::nic
