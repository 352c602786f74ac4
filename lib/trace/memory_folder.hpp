// The folder in memory (/dev/shm) that holds a process's rings while it runs. It is locked as long as the process lives, so
// that the next process that starts on this host recognises what a killed one left behind, and clears it.
#pragma once

#include <cstdint>
#include <string>

namespace elbowroom::trace {

class MemoryFolder {
 public:
  MemoryFolder() = default;
  // In `base`, for process `stem` (rank-00003) of a job whose files go to `directory`. Throws Refusal.
  MemoryFolder(const std::string& base, std::uint64_t job, const std::string& stem, const std::string& directory);
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  MemoryFolder(MemoryFolder&& other) noexcept;
  MemoryFolder& operator=(MemoryFolder&& other) noexcept;

  const std::string& path() const { return path_; }
  // With the files in it, and unlocks it; allocates nothing but what opendir needs.
  void remove();

 private:
  void claim(const std::string& path, const std::string& directory, const std::string& stem);

  std::string path_;
  int lock_ = -1;
};

// Clears the folders in `base` of this user's dead processes, but those of `job`: where the trace they belong to is still
// there and lacks their rings, these are saved beside it first. Never throws: it is done on the way to something else.
void clear_dead(const std::string& base, std::uint64_t job);

}  // namespace elbowroom::trace
