// Two ways for the same message in the same memory: by MPI, and through StarPU-MPI.
#pragma once

#include <starpu.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "exchange/job.hpp"
#include "machine/machine.hpp"

namespace elbowroom::runtime {

// A message in memory of one NUMA node that StarPU knows as a vector of bytes.
class Message {
 public:
  Message(std::size_t size, int node);  // throws std::runtime_error where there is no such memory
  ~Message();
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  void* data() const { return arena_.data(); }
  std::size_t size() const { return size_; }
  int node() const { return arena_.node(); }
  starpu_data_handle_t handle() const { return handle_; }
  PageReport pages() const { return arena_.verify(size_); }

 private:
  std::size_t size_;
  Arena arena_;
  starpu_data_handle_t handle_ = nullptr;
};

// One of the ways, between ranks 0 and 1. Both wait in the calling thread until the message has left or arrived.
class Path {
 public:
  virtual ~Path() = default;
  virtual void send() = 0;
  virtual void receive() = 0;
  // Rank 0 sends first, rank 1 receives first.
  virtual void round_trips(std::int64_t count) = 0;
  // Reads or changes the message where this way allows it.
  virtual void touch(const std::function<void(void*, std::size_t)>& task) = 0;
};

// MPI_Send and MPI_Recv; the message is out of StarPU's hands while this path lives.
std::unique_ptr<Path> by_mpi(const Job& job, const Message& message);

// starpu_mpi_isend and starpu_mpi_irecv of the data's handle, each waited for: as MPI_Send and MPI_Recv the calling
// thread goes on when the message has left or arrived, so that both paths do the same. (Detached requests, whose
// callbacks run in the communication thread, would spare the way back to the caller: they are no ping-pong of a program.)
std::unique_ptr<Path> by_starpu(const Job& job, const Message& message);

}  // namespace elbowroom::runtime
