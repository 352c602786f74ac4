// json-events [--perfetto] FILE|-: the events of a trace in JSON, or in Perfetto's protobuf, as columns on stdout
// (reader.hpp), for `elbowroom trace overlap`.
//
// Exit 0 done, 1 failed (a sentence on stderr), 2 usage, 4 declined: elbowroom's own reader says what is wrong with it.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "events/perfetto.hpp"
#include "events/reader.hpp"

int main(int count, char** words) {
  using namespace elbowroom::events;
  constexpr int kDeclined = 4;
  const bool perfetto = count == 3 && std::string_view(words[1]) == "--perfetto";
  if (count != 2 && !perfetto) {
    std::fputs("usage: json-events [--perfetto] FILE\n", stderr);
    return 2;
  }
  const char* file = words[count - 1];
  try {
    Source source(file);
    perfetto ? PerfettoReader(source, STDOUT_FILENO).run() : Reader(source, STDOUT_FILENO).run();
    return 0;
  } catch (const Declined& error) {
    std::fprintf(stderr, "json-events: %s: %s\n", file, error.what());
    return kDeclined;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "json-events: %s: %s\n", file, error.what());
    return 1;
  }
}
