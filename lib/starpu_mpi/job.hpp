// What a program has registered, and which rank has or will have the present version of each handle.
#pragma once

#include <mpi.h>
#include <starpu.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "messages.hpp"
#include "order.hpp"

namespace elbowroom::starpu_mpi {

constexpr int kNone = -1;

// What StarPU does not know of a handle.
struct Data {
  std::int64_t tag = kNone;
  int owner = kNone;
  bool here = false;   // on another rank than the owner: the present version was or will be received
  VersionPtr version;  // on the owner: where other ranks read the present version
};

// A message that the program waits for (starpu_mpi_req).
struct Request {
  int peer;
  std::int64_t tag;
  bool over = false;
};

class Job {
 public:
  Job(MPI_Comm communicator, int cpu, bool starpu, bool mpi)
      : given_(communicator), messages(communicator, cpu), order(messages), ends_starpu(starpu), ends_mpi(mpi) {}

  int rank() const { return messages.rank(); }

  void check(MPI_Comm communicator) {
    if (communicator == given_ || communicator == accepted_) return;
    int result = MPI_UNEQUAL;
    MPI_Comm_compare(communicator, given_, &result);
    if (result != MPI_IDENT && result != MPI_CONGRUENT) {
      messages.fail("communicator: has other ranks than that of starpu_mpi_init_conf; use that one");
    }
    accepted_ = communicator;
  }

  // What is noted of a handle; references stay valid until it is unregistered.
  Data& noted(starpu_data_handle_t handle) {
    const std::lock_guard lock(mutex_);
    return data_[handle];
  }

  Data& registered(starpu_data_handle_t handle, const char* what) {
    const std::lock_guard lock(mutex_);
    const auto found = data_.find(handle);
    if (found == data_.end() || found->second.owner < 0 || found->second.owner >= messages.size()) {
      messages.fail(std::string(what) +
                    ": the data have no rank, or were unregistered; call starpu_mpi_data_register first");
    }
    return found->second;
  }

  void set_owner(starpu_data_handle_t handle, int owner) {
    if (owner < 0 || owner >= messages.size()) {
      messages.fail("rank " + std::to_string(owner) + ": is none of " + std::to_string(messages.size()) +
                    (owner == -2 ? "; STARPU_MPI_PER_NODE is not supported: include starpu_mpi.h" : ""));
    }
    noted(handle).owner = owner;
  }

  void forget(starpu_data_handle_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = data_.find(handle);
    if (found == data_.end()) return;
    if (found->second.version) messages.close(found->second.version);
    data_.erase(found);
  }

  // `reader` is to have the present version; whether it has it, or will without a further message.
  bool fetch(starpu_data_handle_t handle, Data& data, int reader, int priority, std::function<void()> received = {}) {
    if (reader == data.owner) return true;
    if (data.owner == rank()) {
      if (!data.version) data.version = std::make_shared<Version>(handle, address(data));
      const auto added = messages.add(data.version, reader, priority);
      if (added != taskflow::Recipients::Added::kKnown) order.sends(reader, data.tag);
    } else if (reader == rank() && !std::exchange(data.here, true)) {
      order.receives(data.owner, data.tag);
      messages.receive(handle, address(data), data.owner, std::move(received));
      return false;
    }
    return true;
  }

  // A task of rank `writer` has been submitted that writes the data.
  void note_write(starpu_data_handle_t handle, Data& data, int writer, int priority) {
    forget_version(data);
    data.here = false;
    if (writer == data.owner) return;
    if (writer == rank()) {
      order.sends(data.owner, data.tag);
      messages.send(handle, address(data), data.owner, priority, {});
    } else if (data.owner == rank()) {
      order.receives(writer, data.tag);
      messages.receive(handle, address(data), writer, {});
    }
  }

  void flush(starpu_data_handle_t handle, Data& data) {
    forget_version(data);
    if (std::exchange(data.here, false)) starpu_data_invalidate_submit(handle);
  }

  void flush_all() {
    std::vector<std::pair<starpu_data_handle_t, Data*>> all;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [handle, data] : data_) all.emplace_back(handle, &data);
    }
    for (const auto& [handle, data] : all) flush(handle, *data);
  }

  void complete(Request* request) {
    {
      const std::lock_guard lock(mutex_);
      request->over = true;
    }
    completed_.notify_all();
  }

  bool completed(const Request* request) {
    const std::lock_guard lock(mutex_);
    return request->over;
  }

  void wait(const Request* request) {
    std::unique_lock lock(mutex_);
    completed_.wait(lock, [&] { return request->over; });
  }

  void barrier() {
    messages.wait();
    messages.collective([](MPI_Comm on) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Ibarrier(on, &request);
      return request;
    });
  }

  // All tasks and messages of this rank; callbacks may have submitted more.
  void wait_for_all() {
    order.compare();
    do {
      messages.close_all();
      starpu_task_wait_for_all();
      messages.wait();
    } while (starpu_task_nsubmitted() > 0 || !messages.idle());
    barrier();
  }

 private:
  static Address address(const Data& data) { return {Kind::kGraph, data.tag}; }

  void forget_version(Data& data) {
    if (const VersionPtr version = std::exchange(data.version, nullptr)) messages.close(version);
  }

  MPI_Comm given_;
  MPI_Comm accepted_ = MPI_COMM_NULL;
  std::mutex mutex_;
  std::condition_variable completed_;
  std::unordered_map<starpu_data_handle_t, Data> data_;

 public:
  Messages messages;
  Order order;
  const bool ends_starpu, ends_mpi;
};

}  // namespace elbowroom::starpu_mpi
