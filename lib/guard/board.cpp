#include "guard/board.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "descriptor.hpp"

namespace elbowroom::guard {
namespace {

constexpr const char* kShared = "/dev/shm";
constexpr const char* kPrefix = "elbow-guard-";

[[noreturn]] void refuse(int code, const std::string& path, const std::string& what) {
  throw Refusal(code, path + ": " + what);
}

// 0, or the errno of why not.
int write_board(int file, std::uint32_t ranks) {
  // posix_fallocate: a mapping of a full file system ends the program with SIGBUS.
  const auto bytes = static_cast<off_t>(Board::bytes_for(ranks));
  const int failed = posix_fallocate(file, 0, bytes);
  if (failed != 0) {
    return failed;
  }
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.places = ranks;
  header.scale = kScale;
  return pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) ? 0 : EIO;
}

// The file appears whole: several ranks may want to make it at once, and the first one's is that of all.
void make_file(const std::string& path, std::uint32_t ranks) {
  std::string draft = path + ".XXXXXX";
  const Descriptor file(mkostemp(draft.data(), O_CLOEXEC));
  if (file.number() < 0) {
    refuse(errno, path, std::string("the board cannot be made (") + std::strerror(errno) + "); name another folder");
  }
  int failed = write_board(file.number(), ranks);
  failed = failed == 0 && fchmod(file.number(), 0644) != 0 ? errno : failed;
  failed = failed == 0 && link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST ? errno : failed;
  unlink(draft.c_str());
  if (failed != 0) {
    refuse(failed, path, std::string("the board cannot be made (") + std::strerror(failed) + "); name another folder");
  }
}

bool has_ended(std::uint32_t process) { return kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH; }

}  // namespace

Board::Board(const std::string& path, std::uint32_t make) {
  if (path.empty()) {
    throw Refusal(ENOENT, "no job of this node is guarded; start one by `elbowroom guard -- CMD`");
  }
  if (make > 0 && access(path.c_str(), F_OK) != 0) {
    make_file(path, make);
  }
  int number = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  writable_ = number >= 0;
  const Descriptor file(writable_ ? number : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) {
    refuse(errno, path, std::string("the board cannot be opened (") + std::strerror(errno) + ")");
  }
  Header header{};
  const bool whole = pread(file.number(), &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                     std::memcmp(header.magic, kMagic, sizeof kMagic) == 0;
  if (!whole || static_cast<std::uint64_t>(status.st_size) < bytes_for(header.places)) {
    refuse(EBADMSG, path, "is not a board, or is damaged");
  }
  if (header.version != kVersion) {
    refuse(ENOTSUP, path, "is of another release of elbowroom; use the same one for the job and for its readers");
  }
  count_ = header.places;
  bytes_ = bytes_for(count_);
  void* const memory =
      mmap(nullptr, bytes_, writable_ ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) {
    refuse(errno, path, std::string("the board cannot be mapped (") + std::strerror(errno) + ")");
  }
  memory_ = static_cast<char*>(memory);
}

Board::~Board() { munmap(memory_, bytes_); }

Place* Board::take(std::int32_t rank) const {
  sweep();
  const auto own = static_cast<std::uint32_t>(getpid());
  for (std::uint32_t i = 0; i < count_; ++i) {
    std::uint32_t free = 0;
    if (places()[i].process.compare_exchange_strong(free, own)) {
      places()[i].rank = rank;
      std::uint32_t used = header().used;
      while (used < i + 1 && !header().used.compare_exchange_weak(used, i + 1)) {
      }
      return &places()[i];
    }
  }
  return nullptr;
}

int Board::sweep() const {
  int freed = 0;
  for (std::uint32_t i = 0; i < used(); ++i) {
    const std::uint32_t process = places()[i].process;
    if (process != 0 && has_ended(process)) {
      free_place(places()[i], amounts()[i]);
      ++freed;
    }
  }
  return freed;
}

void free_place(Place& place, Amount& amount) {
  amount = 0;
  for (const int direction : {ELBOW_GUARD_OUT, ELBOW_GUARD_IN}) {
    place.flight[direction] = 0;
    place.moved[direction] = 0;
  }
  place.waiting = 0;
  place.held = 0;
  place.step_begin = 0;
  place.steps = 0;
  place.process = 0;  // last: nobody takes it before
}

std::string usual_path() {
  const char* const given = std::getenv("ELBOW_GUARD");
  if (given != nullptr && *given != '\0') {
    return given;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kShared), closedir);
  std::pair<std::int64_t, std::string> latest;
  while (const dirent* const entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string path = std::string(kShared) + "/" + entry->d_name;
    struct stat status {};
    if (std::strncmp(entry->d_name, kPrefix, std::strlen(kPrefix)) == 0 && stat(path.c_str(), &status) == 0 &&
        access(path.c_str(), R_OK) == 0) {
      latest = std::max(latest, std::pair(std::int64_t{status.st_ctim.tv_sec}, path));
    }
  }
  return latest.second;
}

}  // namespace elbowroom::guard
