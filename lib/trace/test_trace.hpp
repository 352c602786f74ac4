// What the recorder's tests share: a folder of their own, a process that is traced in it, and what it left there.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "c_interface.hpp"
#include "trace/reader.hpp"

namespace elbowroom::trace::tests {

struct Folder {
  std::filesystem::path path;
  Folder();
  ~Folder();
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

// A process is traced once: each test's is a child. `status` is how it ended, as waitpid says.
class Traced {
 public:
  elbow_trace_settings settings = c_interface::sized<elbow_trace_settings>();  // of zeros but for the folders

  Traced();
  // Starts the trace, runs the program and ends.
  int run(const std::function<void()>& program);
  // The same without starting a trace.
  int run_alone(const std::function<void()>& program);

  RingContents ring(int thread = 0) const;
  std::vector<std::byte> ring_bytes(int thread = 0) const;
  std::vector<nlohmann::json> lines(const std::string& record) const;
  std::string in_directory(const std::string& name) const { return directory_ + "/" + name; }
  const Folder& folder() const { return folder_; }

 private:
  Folder folder_;
  std::string directory_;
  std::string memory_;
  mutable std::vector<std::byte> bytes_;
};

// Fails the child, which the parent sees.
void must(bool holds, const char* what);
#define MUST(condition) elbowroom::trace::tests::must((condition), #condition)

std::vector<std::byte> bytes_of(const std::string& path);
RingContents contents_of(const std::vector<std::byte>& bytes);
// Of a category of its own, "c".
const elbow_trace_type* type_of(const char* name, const char* first = nullptr);
elbow_trace_summary stopped();
// Events that marks among them say are missing.
std::uint64_t marked(const RingContents& contents);
// Those that are no marks.
std::vector<elbow_trace_slot> kept(const RingContents& contents);

}  // namespace elbowroom::trace::tests
