#include "pmpi/guard/step_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "descriptor.hpp"

namespace elbowroom::pmpi {
namespace {

constexpr std::size_t kFileBytes = kStepHeaderBytes + kKeptCalls * sizeof(CallRecord) + kKeptSteps * sizeof(StepRecord);

}  // namespace

bool make_step_file(const std::string& path, std::int32_t rank, StepFile& made, std::string& why) {
  // Written elsewhere first: the guard sees it whole.
  const std::string draft = path + ".draft";
  const Descriptor file(open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  // posix_fallocate: a mapping of a full file system ends the program with SIGBUS.
  const int failed = file.number() < 0 ? errno : posix_fallocate(file.number(), 0, kFileBytes);
  void* const memory =
      failed != 0 ? MAP_FAILED : mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) {
    why = path + ": the file of steps cannot be made (" + std::strerror(failed != 0 ? failed : errno) + ")";
    unlink(draft.c_str());
    return false;
  }
  auto* const bytes = static_cast<char*>(memory);
  made.header = reinterpret_cast<StepHeader*>(bytes);
  made.calls = reinterpret_cast<CallRecord*>(bytes + kStepHeaderBytes);
  made.steps = reinterpret_cast<StepRecord*>(bytes + kStepHeaderBytes + kKeptCalls * sizeof(CallRecord));
  std::memcpy(made.header->magic, kStepMagic, sizeof kStepMagic);
  made.header->version = kStepVersion;
  made.header->rank = rank;
  made.header->process = static_cast<std::uint32_t>(getpid());
  made.header->learns = 1;
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    why = path + ": the file of steps cannot be made (" + std::strerror(errno) + ")";
    munmap(memory, kFileBytes);
    unlink(draft.c_str());
    return false;
  }
  return true;
}

}  // namespace elbowroom::pmpi
