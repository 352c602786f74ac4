// json-events FILE: the events of a trace in JSON as columns on stdout (reader.hpp), for `elbowroom trace overlap`.
//
// Exit 0 done, 1 failed (a sentence on stderr), 2 usage, 4 declined: elbowroom's own reader says what is wrong with it.
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "events/reader.hpp"

int main(int count, char** words) {
  using namespace elbowroom::events;
  constexpr int kDeclined = 4;
  if (count != 2) {
    std::fputs("usage: json-events FILE\n", stderr);
    return 2;
  }
  try {
    Source source(words[1]);
    Reader(source, STDOUT_FILENO).run();
    return 0;
  } catch (const Declined& error) {
    std::fprintf(stderr, "json-events: %s: %s\n", words[1], error.what());
    return kDeclined;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "json-events: %s: %s\n", words[1], error.what());
    return 1;
  }
}
