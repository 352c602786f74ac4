#include "nic/board.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <system_error>

#include "nic/said.hpp"
#include "no_signals.hpp"

namespace elbowroom::nic {
namespace {

constexpr std::uint32_t kFormat = 0x4e494301;
constexpr int kHighDescriptor = 500;     // programs count on low numbers
constexpr std::size_t kNeighbours = 64;  // slots in which an entry may be

bool lives(int process) { return kill(process, 0) == 0 || errno != ESRCH; }

std::size_t slot_of(std::uint32_t key, std::size_t step) {
  constexpr std::uint32_t kSpread = 2654435761U;  // Knuth's multiplicative hashing
  return (key * kSpread + step) % kConnections;
}

[[noreturn]] void refuse(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

std::string file_of(const std::string& path) { return "/dev/shm" + path; }

// A process that is killed with the lock leaves sums of a moment behind, which the next one continues with.
class Lock {
 public:
  explicit Lock(BoardMemory& memory) : mutex_(memory.mutex) {
    const int result = pthread_mutex_lock(&mutex_);
    if (result == EOWNERDEAD) {
      pthread_mutex_consistent(&mutex_);
    } else if (result != 0) {
      give_up(
          "the shared memory of the emulated NIC is damaged: its lock cannot be taken (ENOTRECOVERABLE); end all its "
          "processes and start again");
    }
  }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  NoSignals blocked_;  // a handler that sends would wait for the lock that its own thread holds
  pthread_mutex_t& mutex_;
};

// A descriptor with a number that programs do not count on.
int moved_up(int opened) {
  const int high = fcntl(opened, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (high >= 0) {
    close(opened);
  }
  return high < 0 ? opened : high;
}

// Numbers in this memory are places in tables: only processes of this user may write them.
void check_owner(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%03o", static_cast<unsigned>(status.st_mode & 07777U));
    throw std::runtime_error(file_of(path) + ": belongs to user " + std::to_string(status.st_uid) + " and has mode " +
                             mode + ", but must belong to user " + std::to_string(geteuid()) +
                             " and have mode 600; remove it, or choose another ELBOW_NIC_NAME");
  }
}

[[noreturn]] void refuse_format(const std::string& path) {
  throw std::runtime_error(file_of(path) +
                           ": is in use by another release of elbowroom; choose another ELBOW_NIC_NAME");
}

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
// alone: what is in the memory is of processes that have ended. False where the last user removed it meanwhile, or who made
// it ended before it was whole.
bool Board::try_attach(const std::string& path, const Nic& nic) {
  const int opened = shm_open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (opened < 0) {
    refuse(file_of(path));
  }
  file_ = moved_up(opened);
  struct stat status {};
  if (fstat(file_, &status) != 0) {
    refuse(file_of(path));
  }
  check_owner(path, status);
  const bool alone = flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (!alone && flock(file_, LOCK_SH) != 0) {
    refuse(file_of(path));
  }
  if (alone && ftruncate(file_, 0) != 0) {
    refuse(file_of(path));
  }
  // Room is taken now: where the memory is full, writing into it would end the program.
  if (const int failed = alone ? posix_fallocate(file_, 0, sizeof(BoardMemory)) : 0; failed != 0) {
    errno = failed;
    refuse(file_of(path));
  }
  if (fstat(file_, &status) != 0) {
    refuse(file_of(path));
  }
  if (status.st_nlink == 0 || status.st_size == 0) {
    close(file_);
    return false;
  }
  if (status.st_size != static_cast<off_t>(sizeof(BoardMemory))) {
    refuse_format(path);
  }
  void* const mapped = mmap(nullptr, sizeof(BoardMemory), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) {
    refuse(file_of(path));
  }
  memory_ = static_cast<BoardMemory*>(mapped);
  holder_ = getpid();
  if (alone) {
    clear(*memory_, nic);
    flock(file_, LOCK_SH);
    return true;
  }
  if (memory_->format == kFormat) {
    return true;
  }
  if (memory_->format != 0) {
    refuse_format(path);
  }
  munmap(mapped, sizeof(BoardMemory));
  close(file_);
  return false;
}

// A lock belongs to what was opened, which fork shares: where one process gave up the lock, or took it alone, both did.
void Board::attach_again() {
  struct stat parents {};
  struct stat own {};
  const int opened = shm_open(path_.c_str(), O_RDWR | O_CLOEXEC, 0);
  const bool same = opened >= 0 && fstat(file_, &parents) == 0 && fstat(opened, &own) == 0 &&
                    own.st_dev == parents.st_dev && own.st_ino == parents.st_ino;
  if (!same || flock(opened, LOCK_SH) != 0) {
    // It is held together with the parent, and not removed by this process.
    if (opened >= 0) {
      close(opened);
    }
    return;
  }
  close(file_);
  file_ = moved_up(opened);
  holder_ = getpid();
}

void Board::detach() {
  if (file_ < 0 || holder_ != getpid()) {
    return;
  }
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) {
    shm_unlink(path_.c_str());
  }
  close(file_);
  file_ = -1;
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
  if (flow < 0) {
    return;
  }
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
