#include "trace/memory_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "trace/lines.hpp"
#include "trace/process.hpp"
#include "trace/refusal.hpp"
#include "trace/ring.hpp"

namespace elbowroom::trace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFront = "elbow-trace-";
constexpr const char* kLock = "/lock";
constexpr int kHighDescriptor = 400;  // programs count on low numbers

std::string pid_namespace() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/ns/pid", ignored).string();
}

// An open lock file in `folder` that this process alone holds; -1 where another does, or it cannot be had.
int locked(const std::string& folder, int flags) {
  const int file = open((folder + kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0) {
    close(file);
    return -1;
  }
  return file;
}

// A program that closed all files, or a file system without locks: the process may live although nobody holds its lock.
bool may_live(const nlohmann::json& owner) {
  return owner.value("namespace", "") == pid_namespace() &&
         process_field(std::to_string(owner.value("pid", 0)), kStarted) == owner.value("started", "");
}

// Whether the trace that the rings belong to is there, and does not have them all.
bool still_wanted(const std::string& folder, const std::string& directory, const std::string& stem) {
  std::ifstream lines(directory + "/" + stem + ".jsonl");
  std::string line;
  std::string last;
  if (!std::getline(lines, line) || line.find('"' + folder + '"') == std::string::npos) {
    return false;
  }
  while (std::getline(lines, line)) {
    last = line;
  }
  const auto end = nlohmann::json::parse(last, nullptr, false);
  return !end.is_object() || end.value("record", "") != "end";
}

// A folder of files. Not std::filesystem: where it has no memory to open a folder, libstdc++ ends the program. Then the folder
// stays, and is cleared by the next job.
void remove_folder(const std::string& folder) {
  if (const std::unique_ptr<DIR, int (*)(DIR*)> opened{opendir(folder.c_str()), closedir}) {
    while (const dirent* entry = readdir(opened.get())) {
      unlinkat(dirfd(opened.get()), entry->d_name, 0);
    }
  }
  rmdir(folder.c_str());
}

bool copied(const std::string& folder, const std::string& copy) {
  std::error_code failed;
  fs::create_directory(copy, failed);
  const std::vector<std::string> names = names_in(folder);  // at least the lock
  for (const std::string& name : names) {
    if (!failed && '/' + name != kLock) {
      fs::copy_file(fs::path(folder) / name, fs::path(copy) / name, failed);
    }
  }
  return !failed && !names.empty();
}

// False where the rings are wanted and cannot be saved.
bool saved(const fs::path& folder, const nlohmann::json& owner) {
  const std::string directory = owner.value("directory", "");
  if (!still_wanted(folder.string(), directory, owner.value("stem", ""))) {
    return true;
  }
  std::error_code failed;
  const std::string copy = (fs::path(directory) / folder.filename()).string();
  if (!copied(folder.string(), copy)) {
    remove_folder(copy);
    return false;
  }
  return true;
}

void clear_if_dead(const fs::path& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) {
    return;
  }
  const int lock = locked(folder.string(), 0);
  if (lock < 0) {
    return;
  }
  const auto owner = nlohmann::json::parse(read_text(folder.string() + kLock), nullptr, false);
  if (owner.is_object() && !may_live(owner) && saved(folder, owner)) {
    remove_folder(folder.string());
  }
  close(lock);
}

}  // namespace

MemoryFolder::MemoryFolder(const std::string& base, std::uint64_t job, const std::string& stem,
                           const std::string& directory) {
  const std::string name = kFront + std::to_string(job) + "-" + stem + "-" + std::to_string(getpid());
  // Under another name until it is locked: nobody may take it for a dead process's.
  const std::string unlocked = base + "/." + name;
  if (mkdir(unlocked.c_str(), 0700) != 0) {
    refuse_file(base + "/" + name, errno);
  }
  const int file = locked(unlocked, O_CREAT | O_EXCL);
  lock_ = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (file >= 0 && lock_ >= 0) {
    close(file);
  }
  lock_ = lock_ < 0 ? file : lock_;
  path_ = unlocked;
  try {
    claim(base + "/" + name, directory, stem);
  } catch (...) {
    remove();
    throw;
  }
}

// Says whose it is, and takes its name.
void MemoryFolder::claim(const std::string& path, const std::string& directory, const std::string& stem) {
  Line line;
  line.add("pid", getpid()).add("started", process_field("self", kStarted)).add("namespace", pid_namespace());
  const std::string owner = line.add("directory", fs::absolute(directory).string()).add("stem", stem).text();
  const bool wrote = lock_ < 0 || write(lock_, owner.data(), owner.size()) == static_cast<ssize_t>(owner.size());
  if (!wrote || rename(path_.c_str(), path.c_str()) != 0) {
    refuse_file(path, wrote ? errno : ENOSPC);
  }
  path_ = path;
}

MemoryFolder::~MemoryFolder() {
  if (lock_ >= 0) {
    close(lock_);
  }
}

MemoryFolder::MemoryFolder(MemoryFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}

MemoryFolder& MemoryFolder::operator=(MemoryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

void MemoryFolder::remove() {
  remove_folder(path_);
  if (lock_ >= 0) {
    close(std::exchange(lock_, -1));
  }
}

void clear_dead(const std::string& base, std::uint64_t job) {
  try {
    const std::string own = kFront + std::to_string(job) + "-";  // lives, or is being merged
    for (const std::string& name : names_in(base)) {
      if (name.starts_with(kFront) && (job == 0 || !name.starts_with(own))) {
        clear_if_dead(fs::path(base) / name);
      }
    }
  } catch (const std::exception&) {
    return;  // what is left is cleared by the next
  }
}

}  // namespace elbowroom::trace
