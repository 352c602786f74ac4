// otf2-events ANCHOR: the events of an archive of OTF2 as columns on stdout (archive.hpp), for `elbowroom trace overlap`.
//
// Exit 0 done, 1 failed (a sentence on stderr), 2 usage, 4 declined: elbowroom's own reader says what is wrong with it.
// libotf2 ends the process on some damage.
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "events/otf2/archive.hpp"

int main(int count, char** words) {
  using namespace elbowroom::events;
  constexpr int kDeclined = 4;
  if (count != 2) {
    std::fputs("usage: otf2-events ANCHOR\n", stderr);
    return 2;
  }
  try {
    Otf2Reader(words[1], STDOUT_FILENO).run();
    return 0;
  } catch (const Otf2Declined& error) {
    std::fprintf(stderr, "otf2-events: %s: %s\n", words[1], error.what());
    return kDeclined;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "otf2-events: %s: %s\n", words[1], error.what());
    return 1;
  }
}
