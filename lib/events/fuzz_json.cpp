// libFuzzer: any bytes as a file of events, in JSON or (odd sizes) of Perfetto.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "events/perfetto.hpp"
#include "events/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace elbowroom::events;
  static const int file = ::memfd_create("events", 0);
  static const std::string name = "/proc/self/fd/" + std::to_string(file);
  static const int out = ::open("/dev/null", O_WRONLY);
  (void)::ftruncate(file, 0);
  (void)::pwrite(file, data, size, 0);
  try {
    Source source(name);
    size % 2 == 0 ? Reader(source, out).run() : PerfettoReader(source, out).run();
  } catch (const Declined&) {
    return 0;
  }
  return 0;
}
