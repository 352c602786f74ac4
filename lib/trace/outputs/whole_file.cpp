#include "trace/outputs/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include "trace/outputs/ending.hpp"

namespace elbowroom::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaiting = 1 << 20;
constexpr int kMostLinks = 40;  // of a chain, as in the kernel
// A pipe's reader may be started in the same moment.
constexpr std::chrono::milliseconds kReaderPatience{3000};
constexpr std::chrono::milliseconds kReaderPause{20};

const char* hint(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT: return "; free space there, or choose another disk";
    case EACCES:
    case EPERM:
    case EROFS: return "; choose a place you may write to";
    case ENOENT: return "; its parent folder must exist";
    case ENOTDIR: return "; its parent must be a folder";
    case EEXIST:
    case ENOTEMPTY: return "; choose another name, or remove it";
    case EISDIR: return "; a folder is there: choose another name";
    case EPIPE: return "; its reader ended early: choose a file";
    case ENXIO: return "; nothing reads it: start its reader first, or name a file";
    case ELOOP: return "; its symbolic links lead in a circle";
    default: return "";
  }
}

// What another process has open under a name in /proc (/dev/fd/3, /dev/stdout) cannot be replaced by a new file.
bool is_open_file(const std::string& path) {
  std::string at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code failed;
    if (fs::canonical(fs::path(at).parent_path(), failed).string().starts_with("/proc/")) {
      return true;
    }
    const fs::path next = fs::read_symlink(at, failed);
    if (failed) {
      return false;
    }
    at = (next.is_absolute() ? next : fs::path(at).parent_path() / next).string();
  }
  return false;
}

bool replaceable(const std::string& path) {
  struct stat result {};
  return ::stat(path.c_str(), &result) != 0 || (S_ISREG(result.st_mode) && !is_open_file(path));
}

}  // namespace

void cannot_write(const std::string& path, int code) {
  throw std::runtime_error("out '" + path + "': cannot be written (" + std::strerror(code) + ")" + hint(code));
}

std::string target_of(const std::string& path) {
  std::string target = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code failed;
    const fs::path next = fs::read_symlink(target, failed);
    if (failed) {
      return target;
    }
    target = (next.is_absolute() ? next : fs::path(target).parent_path() / next).string();
  }
  cannot_write(path, ELOOP);
}

WholeFile::WholeFile(std::string path) : path_(std::move(path)) {
  waiting_.reserve(kWaiting);
  if (path_ == "-") {
    file_ = STDOUT_FILENO;
  } else if (replaceable(path_)) {
    target_ = target_of(path_);
    make_temporary();
  } else {
    open_existing();
  }
}

// A folder is refused by the kernel (EISDIR).
void WholeFile::open_existing() {
  const auto until = std::chrono::steady_clock::now() + kReaderPatience;
  file_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (file_ < 0 && errno == ENXIO && std::chrono::steady_clock::now() < until) {
    check_end_requested();
    std::this_thread::sleep_for(kReaderPause);
    file_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  }
  if (file_ < 0) {
    refused(errno);
  }
  const int flags = ::fcntl(file_, F_GETFL);
  if (flags < 0 || ::fcntl(file_, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    refused(errno);
  }
}

void WholeFile::make_temporary() {
  if (::access(target_.c_str(), F_OK) == 0 && ::access(target_.c_str(), W_OK) != 0) {
    refused(errno);  // a file that is protected stays as it is, although its folder would let it be replaced
  }
  temporary_ = target_ + ".part-XXXXXX";
  file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (file_ < 0) {
    const int code = errno;
    temporary_.clear();
    refused(code);
  }
}

WholeFile::~WholeFile() {
  if (path_ != "-" && file_ >= 0) {
    ::close(file_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void WholeFile::write(std::string_view bytes) { write(bytes.data(), bytes.size()); }

void WholeFile::write(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  if (waiting_.size() + count > kWaiting) {
    flush();
  }
  if (count >= kWaiting) {
    put(from, count);
  } else {
    waiting_.insert(waiting_.end(), from, from + count);
  }
}

// Those of the file that is replaced, else those of any new file.
void WholeFile::take_over_permissions() {
  struct stat before {};
  const bool there = ::stat(target_.c_str(), &before) == 0;
  if (there && ::fchown(file_, before.st_uid, before.st_gid) != 0) {
    // The owner stays the one who writes: only root may give files away.
    before.st_mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = there ? before.st_mode & 07777U : 0666U & ~mask;
  // File systems without permissions refuse to set them.
  if (::fchmod(file_, mode) != 0 && errno != EPERM && errno != ENOTSUP && errno != ENOSYS) {
    refused(errno);
  }
}

void WholeFile::keep() {
  flush();
  if (temporary_.empty()) {
    return;
  }
  take_over_permissions();
  // Some file systems cannot be asked to write at once; they report a full disk in write or close.
  if (::fsync(file_) != 0 && errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) {
    refused(errno);
  }
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0 || std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    refused(errno);
  }
  temporary_.clear();
}

void WholeFile::flush() {
  check_end_requested();
  put(waiting_.data(), waiting_.size());
  waiting_.clear();
}

void WholeFile::put(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file_, bytes, count);
    if (written < 0 && errno == EINTR) {
      check_end_requested();
      continue;
    }
    if (written < 0) {
      refused(errno);
    }
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
}

}  // namespace elbowroom::trace
