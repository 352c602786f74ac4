#include "nic/board.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

namespace elbowroom::nic {
namespace {

constexpr std::uint32_t kFormat = 0x4e494301;
constexpr int kHighDescriptor = 500;     // programs count on low numbers
constexpr std::size_t kNeighbours = 64;  // slots in which an entry may be

struct Entry {
  std::uint32_t key;
  int owner;  // 0: the slot is free
  int node;
};

bool lives(int process) { return kill(process, 0) == 0 || errno != ESRCH; }

std::size_t slot_of(std::uint32_t key, std::size_t step) {
  constexpr std::uint32_t kSpread = 2654435761U;  // Knuth's multiplicative hashing
  return (key * kSpread + step) % kConnections;
}

[[noreturn]] void refuse(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

}  // namespace

struct BoardMemory {
  std::uint32_t format;
  pthread_mutex_t mutex;
  Fluid fluid;
  std::array<Entry, kConnections> entries;
};

namespace {

// A process that is killed with the lock leaves sums of a moment behind, which the next one continues with.
class Lock {
 public:
  explicit Lock(BoardMemory& memory) : mutex_(memory.mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) {
      pthread_mutex_consistent(&mutex_);
    }
  }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

void clear(BoardMemory& memory, const Nic& nic) {
  new (&memory) BoardMemory{};
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&memory.mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  memory.fluid.start(nic, now_ns());
  memory.format = kFormat;
}

}  // namespace

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void Board::attach(const std::string& name, const Nic& nic) {
  path_ = "/elbow-nic-" + std::to_string(geteuid()) + "-" + name;
  while (!try_attach(path_, nic)) {
  }
}

// Everybody holds a shared lock on the file, which ends with its process, however that ends. Who gets the exclusive lock is
// alone: what is in the memory is of processes that have ended. False where the last user removed it meanwhile.
bool Board::try_attach(const std::string& path, const Nic& nic) {
  const int opened = shm_open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (opened < 0) {
    refuse(path);
  }
  const int high = fcntl(opened, F_DUPFD_CLOEXEC, kHighDescriptor);
  file_ = high < 0 ? opened : high;
  if (high >= 0) {
    close(opened);
  }
  const bool alone = flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (!alone && flock(file_, LOCK_SH) != 0) {
    refuse(path);
  }
  struct stat status {};
  if (fstat(file_, &status) != 0 || (alone && ftruncate(file_, sizeof(BoardMemory)) != 0)) {
    refuse(path);
  }
  if (status.st_nlink == 0 || (!alone && status.st_size != static_cast<off_t>(sizeof(BoardMemory)))) {
    close(file_);
    return false;
  }
  void* const mapped = mmap(nullptr, sizeof(BoardMemory), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) {
    refuse(path);
  }
  memory_ = static_cast<BoardMemory*>(mapped);
  if (alone) {
    clear(*memory_, nic);
    flock(file_, LOCK_SH);
  }
  return true;
}

void Board::detach() {
  if (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) == 0) {
    shm_unlink(path_.c_str());
  }
  if (file_ >= 0) {
    close(file_);
    file_ = -1;
  }
}

Nic Board::nic() const { return memory_->fluid.nic(); }

int Board::open_flow(int source, int target) {
  const Lock lock(*memory_);
  Fluid& fluid = memory_->fluid;
  int flow = fluid.open(getpid(), source, target);
  if (flow < 0) {
    for (int i = 0; i < kFlows; ++i) {
      if (!lives(fluid.owner(i))) {
        fluid.close(i);
      }
    }
    flow = fluid.open(getpid(), source, target);
  }
  return flow;
}

void Board::close_flow(int flow) {
  const Lock lock(*memory_);
  memory_->fluid.close(flow);
}

Grant Board::take(int flow, std::size_t wanted) {
  const Lock lock(*memory_);
  return memory_->fluid.take(flow, wanted, now_ns());
}

void Board::give_back(int flow, std::size_t bytes) {
  const Lock lock(*memory_);
  memory_->fluid.give_back(flow, bytes);
}

void Board::enter(Connection connection, int node) {
  const Lock lock(*memory_);
  for (std::size_t i = 0; i < kNeighbours; ++i) {
    Entry& entry = memory_->entries[slot_of(connection.key(), i)];
    if (entry.owner == 0 || entry.key == connection.key() || !lives(entry.owner)) {
      entry = {connection.key(), getpid(), node};
      return;
    }
  }
}

void Board::leave(Connection connection) {
  const Lock lock(*memory_);
  for (std::size_t i = 0; i < kNeighbours; ++i) {
    Entry& entry = memory_->entries[slot_of(connection.key(), i)];
    if (entry.owner == getpid() && entry.key == connection.key()) {
      entry.owner = 0;
    }
  }
}

int Board::node_of(Connection connection) const {
  const Lock lock(*memory_);
  for (std::size_t i = 0; i < kNeighbours; ++i) {
    const Entry& entry = memory_->entries[slot_of(connection.key(), i)];
    if (entry.owner != 0 && entry.key == connection.key() && lives(entry.owner)) {
      return entry.node;
    }
  }
  return kNobody;
}

}  // namespace elbowroom::nic
