#include "profile/profile_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include "base/cgroup.hpp"
#include "descriptor.hpp"
#include "profile/ticks.hpp"

namespace elbowroom::profile {
namespace {

constexpr std::uint64_t kGrowth = 256 << 10;  // bytes: 8,192 records

int open_file(const std::string& path, int flags) { return open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0644); }

// Where a file system cannot reserve space, zeros do.
int write_zeros(int file, std::uint64_t from, std::uint64_t to) {
  const std::vector<char> zeros(std::min<std::uint64_t>(to - from, kGrowth));
  while (from < to) {
    const ssize_t wrote =
        pwrite(file, zeros.data(), std::min<std::uint64_t>(zeros.size(), to - from), static_cast<off_t>(from));
    if (wrote <= 0) {
      return wrote < 0 ? errno : ENOSPC;
    }
    from += static_cast<std::uint64_t>(wrote);
  }
  return 0;
}

// 0, or the errno of why not.
int take_space(int file, std::uint64_t from, std::uint64_t to) {
  if (fallocate(file, 0, static_cast<off_t>(from), static_cast<off_t>(to - from)) == 0) {
    return 0;
  }
  return errno == EOPNOTSUPP || errno == ENOSYS ? write_zeros(file, from, to) : errno;
}

[[noreturn]] void refuse(int code, const std::string& path) {
  throw Refusal(code, path + ": the file cannot be made (" + std::strerror(code) + "); name another folder");
}

std::uint64_t wall_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

template <std::size_t size>
void copy_text(char (&to)[size], const char* text) {
  const std::size_t length = text == nullptr ? 0 : strnlen(text, size - 1);
  std::memcpy(to, text == nullptr ? "" : text, length);
  to[length] = '\0';
}

}  // namespace

ProfileFile::ProfileFile(const elbow_profile_settings& settings)
    : path_(std::filesystem::absolute(settings.path)), places_(places_for(settings)) {
  const Descriptor file(open_file(path_, O_RDWR | O_CREAT | O_EXCL));
  if (file.number() < 0) {
    refuse(errno, path_);
  }
  int failed = ftruncate(file.number(), static_cast<off_t>(places_.end)) != 0 ? errno : 0;
  taken_ = std::min(places_.records + kGrowth, places_.end);
  failed = failed != 0 ? failed : take_space(file.number(), 0, taken_);
  struct stat status {};
  failed = failed != 0 ? failed : fstat(file.number(), &status) != 0 ? errno : 0;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  void* const memory =
      failed != 0 ? MAP_FAILED : mmap(nullptr, places_.end, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) {
    failed = failed != 0 ? failed : errno;
    unlink(path_.c_str());
    refuse(failed, path_);
  }
  memory_ = static_cast<char*>(memory);
  fill(settings);
}

ProfileFile::~ProfileFile() { munmap(memory_, places_.end); }

// Writing to a page of a hole takes its space, or fails here and not with SIGBUS. Kernels before 5.14 cannot be asked for it.
bool ProfileFile::take_more(std::uint64_t from, std::uint64_t to) const {
#ifdef MADV_POPULATE_WRITE
  if (madvise(memory_ + from, to - from, MADV_POPULATE_WRITE) == 0) {
    return true;
  }
  if (errno != EINVAL) {
    return false;
  }
#endif
  const Descriptor file(open_file(path_, O_RDWR));
  struct stat status {};
  const bool is_own =
      file.number() >= 0 && fstat(file.number(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  return is_own && take_space(file.number(), from, to) == 0;
}

std::uint64_t ProfileFile::grow() {
  const std::uint64_t to = std::min(taken_ + kGrowth, places_.end);
  if (to > taken_ && take_more(taken_, to)) {
    taken_ = to;
  }
  return (taken_ - places_.records) / sizeof(elbow_profile_record);
}

void ProfileFile::fill(const elbow_profile_settings& settings) {
  Header& header = *this->header();
  header.version = kVersion;
  header.header_bytes = kHeaderBytes;
  header.rank = settings.rank;
  header.size = settings.ranks;
  header.pid = static_cast<std::uint64_t>(getpid());
  header.window_ns = settings.window_ns;
  header.windows = settings.windows;
  header.records = settings.records;
  header.call_kinds = settings.call_kinds;
  header.thread_room = kMostThreads;
  header.module_room = kMostModules;
  header.site_room = settings.sites;
  header.nodes_offset = places_.nodes;
  header.threads_offset = places_.threads;
  header.modules_offset = places_.modules;
  header.sites_offset = places_.sites;
  header.calls_offset = places_.calls;
  header.windows_offset = places_.windows;
  header.records_offset = places_.records;
  gethostname(header.host, sizeof header.host - 1);
  copy_text(header.mpi, settings.mpi);
  const Cgroup limits = read_cgroup();
  header.cpu_limit = limits.unknown.empty() ? limits.cpus.value_or(0) : -1;
  // A list that is cut off would be another one.
  copy_text(header.cpuset, limits.cpuset.size() < sizeof header.cpuset ? limits.cpuset.c_str() : "");
  for (std::uint32_t i = 0; i < settings.call_kinds; ++i) {
    copy_text(calls()[i].name, settings.calls[i]);
  }
  if (settings.nodes != nullptr) {
    set_nodes(settings.nodes);
  }
}

// The magic comes last: a file that has it is whole.
void ProfileFile::set_nodes(const std::int32_t* nodes) {
  Header& header = *this->header();
  header.node = nodes[header.rank];
  header.nodes = static_cast<std::int32_t>(std::set<std::int32_t>(nodes, nodes + header.size).size());
  header.local_rank = static_cast<std::int32_t>(std::count(nodes, nodes + header.rank, header.node));
  header.local_size = static_cast<std::int32_t>(std::count(nodes, nodes + header.size, header.node));
  std::copy_n(nodes, header.size, reinterpret_cast<std::int32_t*>(memory_ + places_.nodes));
  header.start_ns = now();
  header.start_wall_ns = wall_ns();
  std::memcpy(header.magic, kMagic, sizeof kMagic);
}

}  // namespace elbowroom::profile
