// The task graph as one process sees it (Swartvagher 2022, sections 4.2.1, 4.3.1 and 4.3.4): every process submits all tasks,
// and keeps those that it executes and the data that it has, sends or receives. A state machine: it calls no MPI, starts no
// thread and looks at no clock. One thread uses a graph.
//
// A write makes a new version of its data. Reads of one version on other processes are gathered in a bag of recipients until
// the version is ready; then it is sent to all of them at once. A process that reads it later gets a message of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "recipients.hpp"

namespace elbowroom::taskflow {

using Data = std::uint32_t;
using Operation = std::uint64_t;  // a send or a receive; 0: none
using Kernel = void (*)(void* const* buffers, const void* argument);

enum class Mode : std::uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

struct Use {
  Data data = 0;
  Mode mode = Mode::kRead;
};

struct Version;

// A task that this process executes.
struct Task {
  Kernel kernel = nullptr;
  std::vector<std::byte> argument;
  int priority = 0;
  std::vector<void*> buffers;  // by use
  std::vector<Mode> modes;     // by use
  // The graph's own:
  unsigned missing = 0;  // conditions that do not hold yet
  std::vector<std::shared_ptr<Version>> reads;
  std::vector<std::shared_ptr<Version>> writes;  // that it makes
};

// What the graph asks of its process.
class Actions {
 public:
  Actions() = default;
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  virtual ~Actions() = default;

  // All that the task uses is here: finish() is to be called when it is over.
  virtual void run(Task& task) = 0;
  // received() and released() are to be called for these.
  virtual Operation receive(int root, Data data, std::span<std::byte> memory) = 0;
  virtual Operation send(Data data, std::span<const std::byte> memory, std::span<const Destination> recipients) = 0;
};

// Where copies of other processes' data are put. Outlives the graph.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  virtual std::byte* allocate(std::size_t size);  // on the heap, where nothing else is said
  virtual void free(std::byte* memory);
};

struct Settings {
  bool broadcasts = true;  // false: each recipient gets a message of its own
  // Ready data wait for recipients until so many more tasks are submitted, the next write, or close(); 0: not at all.
  std::size_t hold = 0;
  bool early = true;  // readers start at RECEIVED; false: at RELEASED, as all tasks in older runtimes
};

class Graph {
 public:
  Graph(Actions& actions, Memory& memory, int rank, int size, const Settings& settings);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Data of `size` bytes that `owner` has; `memory` is needed there only. All processes add the same data in the same order.
  // Throws std::invalid_argument for a process that does not exist, and where the owner has no memory.
  Data add(std::byte* memory, std::size_t size, int owner);

  // A task that `rank` executes. All processes submit the same tasks in the same order. Throws std::invalid_argument for
  // data that are unknown or used twice, a process that does not exist, and a negative priority.
  void submit(Kernel kernel, std::span<const std::byte> argument, std::span<const Use> uses, int priority, int rank);

  // The version that the last submitted write makes will have so many recipients: it is sent when they are known, at the next
  // write, or at close().
  void expect(Data data, std::size_t recipients);
  // Processes besides the owner read the present version no more: their copies are freed. All processes call it alike.
  void flush(Data data);
  // Sends what waits for announced recipients: no more tasks are submitted for now.
  void close();

  void finish(Task& task);
  void received(Operation operation);
  void released(Operation operation);

  // Tasks of this process that are not over.
  std::size_t live() const { return tasks_.size(); }
  bool idle() const { return tasks_.empty() && operations_.empty() && postponed_ == 0; }
  int owner(Data data) const;
  const Counters& counters() const { return counters_; }

 private:
  struct State;
  using VersionPtr = std::shared_ptr<Version>;
  // Ready data that are not sent yet.
  struct Held {
    std::size_t until = 0;  // tasks submitted
    VersionPtr version;
  };
  struct Transfer {
    VersionPtr version;
    bool sends = false;
  };

  VersionPtr make_version(Data data, std::shared_ptr<std::byte> memory);
  VersionPtr read(Data data, int reader, int priority);
  void write(Data data, int writer, Task* task);
  void add_recipient(const VersionPtr& version, int rank, int priority);
  void make_ready(const VersionPtr& version);
  void close(const VersionPtr& version);
  void send(const VersionPtr& version, std::span<const Destination> recipients);
  void receive(const VersionPtr& version, int root);
  void look_whether_free(const VersionPtr& version);
  void satisfy(Task& task);
  std::shared_ptr<std::byte> allocate(std::size_t size);
  void check(std::span<const Use> uses, int priority, int rank) const;

  Actions& actions_;
  Memory& memory_;
  int rank_;
  int size_;
  Settings settings_;
  Counters counters_;
  std::vector<State> states_;
  std::unordered_map<Task*, std::unique_ptr<Task>> tasks_;
  std::unordered_map<Operation, Transfer> operations_;
  std::vector<VersionPtr> expecting_;
  std::deque<Held> held_;
  std::size_t submitted_ = 0;
  bool submitting_ = false;
  std::size_t postponed_ = 0;  // receives that wait for their memory
};

}  // namespace elbowroom::taskflow
