// Messages between StarPU handles over libelbow_broadcast. A handle is acquired in main memory around each message, by StarPU's
// own order of what was submitted; where several ranks read one version of it, that version is one broadcast (Swartvagher 2022,
// section 4.2.1). One thread, `progress`, calls MPI and libelbow_broadcast; all functions may be called by any thread.
#pragma once

#include <mpi.h>
#include <starpu.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "contents.hpp"
#include "elbowroom/broadcast.h"
#include "taskflow/recipients.hpp"

namespace elbowroom::starpu_mpi {

// Messages of the task graph and those that the program sends itself do not meet.
enum class Kind : std::uint8_t { kGraph, kProgram };

struct Address {
  Kind kind = Kind::kGraph;
  std::int64_t tag = 0;
};

// A version of data that this rank sends.
struct Version {
  Version(starpu_data_handle_t of, Address to) : handle(of), address(to) {}

  starpu_data_handle_t handle;
  Address address;
  taskflow::Recipients recipients;
  std::function<void()> over;  // is called when it is sent
  std::optional<Contents> contents;
  bool held = true;    // waits for further recipients while it is ready
  bool ready = false;  // and acquired
  bool sent = false;   // to those that were known
};
using VersionPtr = std::shared_ptr<Version>;

struct Incoming;

class Messages {
 public:
  // Ends the job with a sentence where a message fails. `cpu` is where the thread is bound, by StarPU's numbers; -1: nowhere.
  Messages(MPI_Comm communicator, int cpu);
  ~Messages();  // collective; after wait()
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // A rank reads this version, whose handle has at this point of the program what it is to read.
  taskflow::Recipients::Added add(const VersionPtr& version, int rank, int priority);
  // No rank reads it from now on that has not been added.
  void close(const VersionPtr& version);
  void send(starpu_data_handle_t handle, Address address, int rank, int priority, std::function<void()> over);
  // `received` is called when tasks may read the data.
  void receive(starpu_data_handle_t handle, Address address, int root, std::function<void()> received);

  void count_submission(bool here);
  // Sends what waits for further recipients.
  void close_all();
  // Returns when no message of this rank is under way.
  void wait();
  bool idle();
  // Starts a collective operation on the communicator, by the thread, and waits for it.
  void collective(const std::function<MPI_Request(MPI_Comm)>& start);
  taskflow::Counters counters();

  // A sentence on stderr and the end of the job.
  [[noreturn]] void fail(const std::string& sentence) const;
  void warn(const std::string& sentence) const;

 private:
  using Clock = std::chrono::steady_clock;
  using Operation = elbow_broadcast_operation;
  using Lock = std::unique_lock<std::mutex>;
  struct Held {
    std::uint64_t until = 0;  // submitted tasks
    VersionPtr version;
  };
  struct Transfer {
    VersionPtr version;
    std::shared_ptr<Incoming> incoming;
  };
  struct Collective {
    MPI_Request request;
    bool* over;
  };

  void acquire(const VersionPtr& version);
  void on_ready(const VersionPtr& version);
  void post(std::function<void()> action);
  void finish_one();

  void progress(int cpu);
  bool act();
  bool take_events();
  bool test_collectives();
  void pause(Clock::duration quiet);
  void transmit(const VersionPtr& version);
  void expect(const std::shared_ptr<Incoming>& incoming);
  void received(Incoming& incoming);
  void released(Operation operation);
  void note(const std::shared_ptr<Incoming>& incoming, bool Incoming::*happened);
  void check(int result) const;
  std::string name_of(Operation operation) const;

  MPI_Comm communicator_;  // of broadcasts
  MPI_Comm collectives_on_;
  int rank_ = 0, size_ = 1;
  elbow_broadcast* broadcast_ = nullptr;
  std::string tree_;
  elbow_broadcast_way way_{};

  std::mutex mutex_;
  std::condition_variable posted_any_, changed_;
  std::vector<std::function<void()>> posted_;
  std::deque<Held> held_;
  std::uint64_t submitted_ = 0;
  Clock::time_point last_submission_;
  std::uint64_t pending_ = 0;
  taskflow::Counters counters_;
  bool stop_ = false;

  // The thread's own.
  std::unordered_map<Operation, Transfer> transfers_;
  std::vector<Collective> collectives_;
  std::vector<std::function<void()>> actions_;
  std::thread thread_;
};

}  // namespace elbowroom::starpu_mpi
