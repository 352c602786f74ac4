// A file that is there whole or not at all: written beside its place, under its name once it is complete.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace elbowroom::trace {

// What cannot be written is an std::runtime_error with the path, why (`code`: an errno), and what mends it.
[[noreturn]] void cannot_write(const std::string& path, int code);

class WholeFile {
 public:
  // "-": stdout, which nothing takes back.
  explicit WholeFile(std::string path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(std::string_view bytes);
  void write(const void* bytes, std::size_t count);
  // All is written, and the file gets its name.
  void keep();

 private:
  void flush();
  void put(const char* bytes, std::size_t count);
  [[noreturn]] void refused(int code) const { cannot_write(path_, code); }

  std::string path_;
  std::string temporary_;  // empty: stdout, or kept
  int file_ = -1;
  std::vector<char> waiting_;
};

}  // namespace elbowroom::trace
