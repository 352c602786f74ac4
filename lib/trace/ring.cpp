#include "trace/ring.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trace/refusal.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPageSlots = kPage / sizeof(elbow_trace_slot);

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// MPI itself takes shared memory when it starts, of which containers have 64 MiB: without it the program would not run.
void check_reserve(int file, std::uint64_t more, const std::string& path) {
  constexpr std::uint64_t kMostReserve = 1ULL << 30;
  struct statfs memory {};
  if (fstatfs(file, &memory) != 0 || memory.f_type != TMPFS_MAGIC) {
    return;
  }
  const auto block = static_cast<std::uint64_t>(memory.f_bsize);
  if (memory.f_bavail * block < more + std::min(memory.f_blocks * block / 2, kMostReserve)) {
    throw Refusal(ENOSPC, path +
                              ": would leave less than half of that memory to the program; free space there, or ask "
                              "for smaller rings (--buffer)");
  }
}

// Of a ring of GROW texts are in front, as its end is not known.
RingHeader placed(const RingHeader& request) {
  RingHeader header = request;
  if (header.policy == ELBOW_TRACE_GROW) {
    header.text_capacity = header.text_stored = whole_pages(header.text_capacity);
    header.texts_at = kHeaderBytes;
    header.header_bytes = static_cast<std::uint32_t>(kHeaderBytes + header.text_capacity);
  }
  return header;
}

std::size_t file_bytes(const RingHeader& header) {
  const std::size_t texts = header.texts_at == 0 ? header.text_capacity : 0;
  return header.header_bytes + header.capacity * sizeof(elbow_trace_slot) + texts;
}

// Memory that is taken to the last leaves nothing to the program that is traced.
void check_memory(int file, std::uint64_t more, const std::string& path) {
  struct statvfs memory {};
  if (fstatvfs(file, &memory) == 0 && memory.f_blocks > 0 &&
      memory.f_bavail * memory.f_frsize < more + memory.f_blocks * memory.f_frsize / 10) {
    throw Refusal(ENOSPC, path +
                              ": does not grow, as that would leave less than a tenth of that memory; make room "
                              "there, record fewer categories, or drain");
  }
}

}  // namespace

void refuse_file(const std::string& path, int code) {
  throw Refusal(code, path + ": cannot be written (" + std::strerror(code) +
                          "); free space there, or name another directory or memory");
}

std::uint64_t stamp(bool counter) {
  elbow_trace_ring ring{};
  ring.counter = counter ? 1 : 0;
  return elbow_trace_time(&ring);
}

Ring::Ring(std::string path, const RingHeader& header) : path_(std::move(path)) {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    refuse_file(path_, errno);
  }
  try {
    reserve(file, placed(header));
  } catch (...) {
    ::close(file);
    unlink(path_.c_str());
    throw;
  }
  ::close(file);
}

void Ring::reserve(int file, const RingHeader& header) {
  const std::size_t bytes = file_bytes(header);
  const bool grows = header.policy == ELBOW_TRACE_GROW;
  check_reserve(file, bytes, path_);
  // Room is taken now: a memory that is full must not become a signal in the middle of an event.
  if (const int code = posix_fallocate(file, 0, static_cast<off_t>(bytes)); code != 0) {
    refuse_file(path_, code);
  }
  check_reserve(file, 0, path_);  // ranks that start together have all seen the room that one of them took
  mapped_ = grows ? header.header_bytes + kMostGrown * sizeof(elbow_trace_slot) : bytes;
  void* mapped = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (mapped == MAP_FAILED) {
    refuse_file(path_, errno);
  }
  // Each page is there before its first event: a page fault takes as long as a hundred events.
  for (std::size_t at = 0; at < bytes; at += kPage) {
    static_cast<volatile char*>(mapped)[at] = 0;
  }
  header_ = static_cast<RingHeader*>(mapped);
  *header_ = header;
  header_->ring.slots = slots();
  header_->present = header.capacity;
  extents_ = {{0, header.capacity}};
}

Ring::~Ring() {
  if (header_ != nullptr) {
    munmap(header_, mapped_);
  }
}

void Ring::release() {
  remove_file();
  munmap(std::exchange(header_, nullptr), mapped_);
}

void Ring::remove_file() { unlink(path_.c_str()); }

elbow_trace_slot* Ring::slots() const {
  return reinterpret_cast<elbow_trace_slot*>(reinterpret_cast<char*>(header_) + header_->header_bytes);
}

void Ring::close() {
  if (header_ == nullptr) {
    return;
  }
  __atomic_store_n(&header_->closed, 1, __ATOMIC_SEQ_CST);
  // The others end where they are full: a limit that is lower would hide events of theirs.
  if (header_->policy == ELBOW_TRACE_OVERWRITE) {
    __atomic_store_n(&header_->ring.limit, 0, __ATOMIC_SEQ_CST);
  }
}

// The time is read before and after the rest: a slot that is written meanwhile is not taken for whole.
bool Ring::copy(std::uint64_t number, elbow_trace_slot& slot) const {
  const elbow_trace_slot& from = slots()[number & header_->ring.wrap];
  slot.time = __atomic_load_n(&from.time, __ATOMIC_ACQUIRE);
  slot.type = __atomic_load_n(&from.type, __ATOMIC_ACQUIRE);
  slot.kind = __atomic_load_n(&from.kind, __ATOMIC_ACQUIRE);
  slot.lap = __atomic_load_n(&from.lap, __ATOMIC_ACQUIRE);
  slot.small = __atomic_load_n(&from.small, __ATOMIC_ACQUIRE);
  slot.first = __atomic_load_n(&from.first, __ATOMIC_ACQUIRE);
  slot.second = __atomic_load_n(&from.second, __ATOMIC_ACQUIRE);
  const bool whole = slot.time != 0 && slot.time == __atomic_load_n(&from.time, __ATOMIC_RELAXED) &&
                     slot.lap == static_cast<std::uint8_t>(number >> header_->ring.shift);
  slot.lap = 0;
  return whole;
}

void Ring::add_past(const elbow_trace_slot& event) {
  elbow_trace_ring& ring = header_->ring;
  const std::uint64_t number = elbow_trace_take(&ring);
  elbow_trace_slot& slot = slots()[number & ring.wrap];
  const std::uint64_t time = event.time;
  __atomic_store_n(&slot.time, 0, __ATOMIC_RELEASE);
  slot.type = event.type;
  slot.kind = event.kind;
  slot.lap = static_cast<std::uint8_t>(number >> ring.shift);
  slot.small = event.small;
  slot.first = event.first;
  slot.second = event.second;
  __atomic_store_n(&slot.time, time, __ATOMIC_RELEASE);
}

bool Ring::add_text(std::uint16_t type, std::uint64_t key, std::string_view text) {
  const std::size_t needed = padded(sizeof(TextHeader) + text.size());
  if (header_->text_capacity - header_->text_bytes < needed) {
    __atomic_store_n(&header_->texts_lost, header_->texts_lost + 1, __ATOMIC_RELAXED);
    return false;
  }
  char* place = const_cast<char*>(texts().data()) + header_->text_bytes;
  const TextHeader front{key, type, 0, static_cast<std::uint32_t>(text.size())};
  std::memcpy(place, &front, sizeof front);
  std::memcpy(place + sizeof front, text.data(), text.size());
  __atomic_store_n(&header_->texts, header_->texts + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&header_->text_bytes, header_->text_bytes + needed, __ATOMIC_RELEASE);
  return true;
}

std::string_view Ring::texts() const {
  const char* const start = reinterpret_cast<const char*>(header_);
  const std::size_t at = header_->texts_at != 0 ? header_->texts_at : file_bytes(*header_) - header_->text_capacity;
  return {start + at, __atomic_load_n(&header_->text_bytes, __ATOMIC_ACQUIRE)};
}

std::size_t Ring::grow(std::uint64_t more) {
  const std::uint64_t number = recorded();
  // Where events were lost, memory begins a little before the next one: a signal handler's may come in between.
  const std::uint64_t next = number / kPageSlots * kPageSlots;
  const std::uint64_t from = std::max(header_->present, next - std::min(next, kPageSlots));
  const std::uint64_t to =
      std::min((std::max(number, from) + more + kPageSlots - 1) / kPageSlots * kPageSlots, kMostGrown);
  if (to <= from) {
    throw Refusal(ENOSPC, path_ + ": does not grow beyond 2^29 events; record fewer categories, or drain");
  }
  const std::size_t at = header_->header_bytes + from * sizeof(elbow_trace_slot);
  const std::size_t bytes = (to - from) * sizeof(elbow_trace_slot);
  const int file = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    refuse_file(path_, errno);
  }
  try {
    check_memory(file, bytes, path_);
    if (const int code = posix_fallocate(file, static_cast<off_t>(at), static_cast<off_t>(bytes)); code != 0) {
      refuse_file(path_, code);
    }
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
  for (std::size_t page = 0; page < bytes; page += kPage) {
    reinterpret_cast<volatile char*>(header_)[at + page] = 0;
  }
  if (from == extents_.back().to) {
    extents_.back().to = to;
  } else {
    extents_.push_back({from, to});
  }
  header_->capacity = header_->stored = to;
  __atomic_store_n(&header_->present_from, extents_.back().from, __ATOMIC_RELAXED);
  __atomic_store_n(&header_->present, to, __ATOMIC_RELEASE);
  return bytes;
}

namespace {

// Takes over the memory that the library's own thread has made.
bool take_grown(RingHeader& header, std::uint64_t number) {
  const std::uint64_t present = __atomic_load_n(&header.present, __ATOMIC_ACQUIRE);
  if (number >= present || number < __atomic_load_n(&header.present_from, __ATOMIC_RELAXED)) {
    return false;
  }
  __atomic_store_n(&header.ring.limit, present, __ATOMIC_RELAXED);
  return true;
}

// Takes over the slots that the library's own thread has emptied. Once events were lost, all that follow are until everything
// was taken from the ring: so they are few gaps, of which at most one is open and one was not yet seen by that thread.
bool take_drained(RingHeader& header, std::uint64_t number) {
  const std::uint64_t limit = __atomic_load_n(&header.ring.limit, __ATOMIC_RELAXED);
  const std::uint64_t drained = __atomic_load_n(&header.drained, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&header.losing, __ATOMIC_RELAXED) == 0) {
    if (number < drained + header.capacity) {
      __atomic_store_n(&header.ring.limit, drained + header.capacity, __ATOMIC_RELAXED);
      return true;
    }
    __atomic_store_n(&header.losing, 1, __ATOMIC_RELAXED);
    // A signal handler may have found more room meanwhile.
    if (number < __atomic_load_n(&header.ring.limit, __ATOMIC_RELAXED)) {
      __atomic_store_n(&header.losing, 0, __ATOMIC_RELAXED);
      return true;
    }
    return false;
  }
  if (drained < limit) {
    return false;
  }
  __atomic_store_n(&header.lost_from, limit, __ATOMIC_RELAXED);
  __atomic_store_n(&header.lost_to, number, __ATOMIC_RELAXED);
  __atomic_store_n(&header.ring.limit, number + header.capacity, __ATOMIC_RELEASE);
  __atomic_store_n(&header.losing, 0, __ATOMIC_RELAXED);
  return true;
}

}  // namespace
}  // namespace elbowroom::trace

// Called by the thread itself where its ring seems full. No lock, no system call, but for FLUSH.
extern "C" int elbow_trace_more(elbow_trace_ring* ring, std::uint64_t number) {
  using elbowroom::trace::RingHeader;
  auto& header = *reinterpret_cast<RingHeader*>(reinterpret_cast<char*>(ring) - offsetof(RingHeader, ring));
  if (header.policy < ELBOW_TRACE_DRAIN || __atomic_load_n(&header.closed, __ATOMIC_ACQUIRE) != 0) {
    return 0;
  }
  if (number < __atomic_load_n(&ring->limit, __ATOMIC_RELAXED)) {
    return 1;
  }
  if (header.flush != nullptr) {
    header.flush();
  }
  const bool more = header.policy == ELBOW_TRACE_GROW ? elbowroom::trace::take_grown(header, number)
                                                      : elbowroom::trace::take_drained(header, number);
  return more ? 1 : 0;
}
