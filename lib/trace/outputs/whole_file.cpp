#include "trace/outputs/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace elbowroom::trace {
namespace {

constexpr std::size_t kWaiting = 1 << 20;

const char* mend(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT: return "; make room there, or choose another disk";
    case EACCES:
    case EPERM:
    case EROFS: return "; choose a place you may write to";
    case ENOENT: return "; its parent folder must exist";
    case ENOTDIR: return "; its parent must be a folder";
    case EEXIST:
    case ENOTEMPTY: return "; choose another name, or remove it";
    case EISDIR: return "; a folder is there: choose another name";
    case EPIPE: return "; the program that reads it has ended";
    default: return "";
  }
}

}  // namespace

void cannot_write(const std::string& path, int code) {
  throw std::runtime_error("out '" + path + "': cannot be written (" + std::strerror(code) + ")" + mend(code));
}

WholeFile::WholeFile(std::string path) : path_(std::move(path)) {
  waiting_.reserve(kWaiting);
  if (path_ == "-") {
    file_ = STDOUT_FILENO;
    return;
  }
  temporary_ = path_ + ".part-XXXXXX";
  file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (file_ < 0) {
    const int code = errno;
    temporary_.clear();
    refused(code);
  }
}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) {
    ::close(file_);
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

void WholeFile::keep() {
  flush();
  if (temporary_.empty()) {
    return;
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file_, 0666 & ~mask) != 0 || ::fsync(file_) != 0) {
    refused(errno);
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    refused(errno);
  }
  ::close(file_);
  temporary_.clear();
}

void WholeFile::flush() {
  put(waiting_.data(), waiting_.size());
  waiting_.clear();
}

void WholeFile::put(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file_, bytes, count);
    if (written < 0 && errno == EINTR) {
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
