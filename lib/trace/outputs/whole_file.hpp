// A file that is there whole or not at all: written beside its place, under its name once it is complete. A device, a
// pipe or a socket is written into as it is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace elbowroom::trace {

// What cannot be written is an std::runtime_error with the path, why (`code`: an errno), and a hint.
[[noreturn]] void cannot_write(const std::string& path, int code);
// The path that a chain of symbolic links leads to; nothing needs to be there.
std::string target_of(const std::string& path);

class WholeFile {
 public:
  // "-": stdout, which nothing takes back. A symbolic link stays, and its target is replaced; a file that is replaced
  // hands on its owner and permissions. A pipe is waited for until a program reads it, a few seconds at most.
  explicit WholeFile(std::string path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(std::string_view bytes);
  void write(const void* bytes, std::size_t count);
  // All is written, and the file gets its name.
  void keep();

 private:
  void open_existing();
  void make_temporary();
  void take_over_permissions();
  void flush();
  void put(const char* bytes, std::size_t count);
  [[noreturn]] void refused(int code) const { cannot_write(path_, code); }

  std::string path_;
  std::string target_;     // what `path_` leads to
  std::string temporary_;  // empty: stdout, a device or a pipe, or kept
  int file_ = -1;
  std::vector<char> waiting_;
};

}  // namespace elbowroom::trace
