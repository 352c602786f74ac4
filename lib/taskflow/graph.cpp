#include "graph.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

namespace elbowroom::taskflow {

// A version of data of which this process has a copy, or will have one.
struct Version {
  Data data = 0;
  std::size_t size = 0;
  std::shared_ptr<std::byte> memory;
  bool ready = false;     // may be read
  bool released = false;  // is not written, and not forwarded by the transport
  bool closed = false;    // the bag was sent
  std::size_t readers = 0;
  std::size_t sends = 0;  // that are not released
  std::vector<Task*> waiting;
  // What writes into the same memory next: a task, or a receive of a version that another process makes.
  Task* writer = nullptr;
  std::shared_ptr<Version> incoming;
  int incoming_from = 0;
  // Of the process that sends it:
  Recipients recipients;
  std::size_t expected = 0;
};

struct Graph::State {
  std::size_t size = 0;
  int owner = 0;
  bool flushed = false;
  VersionPtr here;  // the present version; null where this process neither has it nor will
  // What this process wrote for another owner, until it is there: a later one must not overtake it.
  std::weak_ptr<Version> sent_home;
};

constexpr std::align_val_t kAlignment{64};  // a line of the caches

std::byte* Memory::allocate(std::size_t size) { return static_cast<std::byte*>(operator new(size, kAlignment)); }

void Memory::free(std::byte* memory) { operator delete(memory, kAlignment); }

Graph::Graph(Actions& actions, Memory& memory, int rank, int size, const Settings& settings)
    : actions_(actions), memory_(memory), rank_(rank), size_(size), settings_(settings) {}

Graph::~Graph() = default;

int Graph::owner(Data data) const {
  if (data >= states_.size()) {
    throw std::invalid_argument("data " + std::to_string(data) + ": are not registered; " +
                                std::to_string(states_.size()) + " are");
  }
  return states_[data].owner;
}

Data Graph::add(std::byte* memory, std::size_t size, int owner) {
  if (owner < 0 || owner >= size_) {
    throw std::invalid_argument("owner " + std::to_string(owner) + ": is not a process; use 0 to " +
                                std::to_string(size_ - 1));
  }
  if (owner == rank_ && memory == nullptr) {
    throw std::invalid_argument("memory: is NULL on the owner; give the data");
  }
  const auto data = static_cast<Data>(states_.size());
  State& state = states_.emplace_back();
  state.size = size;
  state.owner = owner;
  if (owner == rank_) {
    state.here = make_version(data, {memory, [](std::byte*) {}});
    state.here->ready = state.here->released = state.here->closed = true;
  }
  return data;
}

std::shared_ptr<std::byte> Graph::allocate(std::size_t size) {
  return {memory_.allocate(size), [&pool = memory_](std::byte* memory) { pool.free(memory); }};
}

Graph::VersionPtr Graph::make_version(Data data, std::shared_ptr<std::byte> memory) {
  auto version = std::make_shared<Version>();
  version->data = data;
  version->size = states_[data].size;
  version->memory = std::move(memory);
  return version;
}

void Graph::check(std::span<const Use> uses, int priority, int rank) const {
  if (rank < 0 || rank >= size_) {
    throw std::invalid_argument("rank " + std::to_string(rank) + ": is not a process; use 0 to " +
                                std::to_string(size_ - 1));
  }
  if (priority < 0) {
    throw std::invalid_argument("priority " + std::to_string(priority) + ": is negative; use 0 or more");
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (owner(uses[i].data) != rank && states_[uses[i].data].flushed && uses[i].mode != Mode::kWrite) {
      throw std::invalid_argument("data " + std::to_string(uses[i].data) +
                                  ": were flushed; only their owner reads them until they are written again");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (uses[j].data == uses[i].data) {
        throw std::invalid_argument("data " + std::to_string(uses[i].data) +
                                    ": are used twice by one task; name them once, with the stronger mode");
      }
    }
  }
}

void Graph::submit(Kernel kernel, std::span<const std::byte> argument, std::span<const Use> uses, int priority,
                   int rank) {
  check(uses, priority, rank);
  submitting_ = settings_.hold > 0;
  for (++submitted_; !held_.empty() && held_.front().until <= submitted_; held_.pop_front()) {
    close(held_.front().version);
  }
  std::unique_ptr<Task> own;
  if (rank == rank_) {
    own = std::make_unique<Task>();
    own->kernel = kernel;
    own->argument.assign(argument.begin(), argument.end());
    own->priority = priority;
    own->buffers.resize(uses.size());
    own->missing = 1;  // until all uses are noted
  }
  Task* const task = own.get();
  if (task != nullptr) tasks_.emplace(task, std::move(own));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto [data, mode] = uses[i];
    VersionPtr version;
    if (mode != Mode::kWrite) version = read(data, rank, priority);
    if (mode != Mode::kRead) {
      write(data, rank, task);
    } else if (task != nullptr) {
      ++version->readers;
      if (!version->ready) {
        ++task->missing;
        version->waiting.push_back(task);
      }
      task->reads.push_back(version);
    }
    if (task == nullptr) continue;
    task->buffers[i] = states_[data].here->memory.get();
    task->modes.push_back(mode);
  }
  if (task != nullptr) {
    ++counters_.tasks;
    satisfy(*task);
  }
}

// The present version on `reader`, which gets a copy if it has none; null on other processes.
Graph::VersionPtr Graph::read(Data data, int reader, int priority) {
  State& state = states_[data];
  if (reader == rank_) {
    if (!state.here) {
      state.here = make_version(data, allocate(state.size));
      state.here->closed = true;
      receive(state.here, state.owner);
    }
    return state.here;
  }
  if (state.owner == rank_) add_recipient(state.here, reader, priority);
  return nullptr;
}

// A new version: in the writer's memory, from where it goes to the owner, who sends it to all others.
void Graph::write(Data data, int writer, Task* task) {
  State& state = states_[data];
  state.flushed = false;
  VersionPtr previous = std::exchange(state.here, nullptr);
  if (!previous && writer == rank_) previous = state.sent_home.lock();
  if (previous) {
    previous->expected = 0;
    if (previous->ready) close(previous);
  }
  if (writer != rank_ && state.owner != rank_) return;
  auto memory = previous ? previous->memory : allocate(state.size);
  const VersionPtr next = state.here = make_version(data, std::move(memory));
  if (writer != rank_) {
    next->recipients.holders.resize(static_cast<std::size_t>(size_));
    next->recipients.holders[static_cast<std::size_t>(writer)] = true;
    previous->incoming = next;
    previous->incoming_from = writer;
    ++postponed_;
    look_whether_free(previous);
    return;
  }
  if (state.owner != rank_) {
    next->recipients.bag.push_back({state.owner, task->priority});
    state.sent_home = next;
    ++counters_.messages;
  }
  task->writes.push_back(next);
  if (!previous) return;
  ++task->missing;
  previous->writer = task;
  look_whether_free(previous);
}

void Graph::add_recipient(const VersionPtr& version, int rank, int priority) {
  Recipients& recipients = version->recipients;
  const Recipients::Added added = recipients.add(rank, priority, size_, version->closed, counters_);
  if (added == Recipients::Added::kLate) {
    const Destination only{rank, priority};
    send(version, {&only, 1});
  }
  if (added != Recipients::Added::kGathered) return;
  if (version->ready && version->expected > 0 && recipients.bag.size() >= version->expected) close(version);
}

void Graph::expect(Data data, std::size_t recipients) {
  const VersionPtr& version = (owner(data), states_[data].here);
  if (states_[data].owner != rank_ || version->recipients.count > 0 || recipients == 0) return;
  version->expected = recipients;
  version->closed = false;
  expecting_.push_back(version);
}

void Graph::close() {
  submitting_ = false;
  for (const Held& held : std::exchange(held_, {})) close(held.version);
  for (const VersionPtr& version : std::exchange(expecting_, {})) {
    version->expected = 0;
    if (version->ready) close(version);
  }
}

void Graph::flush(Data data) {
  if (owner(data) != rank_) states_[data].here = nullptr;
  states_[data].flushed = true;
}

void Graph::close(const VersionPtr& version) {
  if (version->closed) return;
  version->closed = true;
  version->expected = 0;
  const std::vector<Destination> bag = std::exchange(version->recipients.bag, {});
  if (settings_.broadcasts) {
    if (!bag.empty()) send(version, bag);
  } else {
    for (const Destination& one : bag) send(version, {&one, 1});
  }
  look_whether_free(version);
}

void Graph::send(const VersionPtr& version, std::span<const Destination> recipients) {
  ++version->sends;
  const Operation operation = actions_.send(version->data, {version->memory.get(), version->size}, recipients);
  operations_.emplace(operation, Transfer{version, true});
}

void Graph::receive(const VersionPtr& version, int root) {
  const Operation operation = actions_.receive(root, version->data, {version->memory.get(), version->size});
  operations_.emplace(operation, Transfer{version, false});
}

void Graph::make_ready(const VersionPtr& version) {
  if (std::exchange(version->ready, true)) return;
  const bool waits = version->expected > 0 && version->recipients.bag.size() < version->expected;
  if (submitting_ && version->expected == 0 && !version->closed && states_[version->data].owner == rank_) {
    held_.push_back({submitted_ + settings_.hold, version});
  } else if (!waits) {
    close(version);
  }
  for (Task* const task : std::exchange(version->waiting, {})) satisfy(*task);
}

void Graph::received(Operation operation) {
  if (settings_.early) make_ready(operations_.at(operation).version);
}

void Graph::released(Operation operation) {
  const auto [version, sends] = operations_.at(operation);
  operations_.erase(operation);
  if (sends) {
    --version->sends;
  } else {
    version->released = true;
    make_ready(version);
  }
  look_whether_free(version);
}

// Whether its memory may be written again.
void Graph::look_whether_free(const VersionPtr& version) {
  if (!version->ready || !version->released || !version->closed || version->sends + version->readers > 0) return;
  if (Task* const writer = std::exchange(version->writer, nullptr)) satisfy(*writer);
  if (const VersionPtr incoming = std::exchange(version->incoming, nullptr)) {
    --postponed_;
    receive(incoming, version->incoming_from);
  }
}

void Graph::satisfy(Task& task) {
  if (--task.missing == 0) actions_.run(task);
}

void Graph::finish(Task& task) {
  const auto node = tasks_.extract(&task);
  for (const VersionPtr& version : task.reads) {
    --version->readers;
    look_whether_free(version);
  }
  for (const VersionPtr& version : task.writes) {
    version->released = true;
    make_ready(version);
    look_whether_free(version);
  }
}

}  // namespace elbowroom::taskflow
