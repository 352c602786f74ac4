/* A computation and a halo of `bytes`, in `messages` parts: nothing is planted in the program. The launch line or the environment plants:
 * ranks that share a core, a wrong transport. */
#include "zoo.h"

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double bytes = zoo.bytes > 0 ? zoo.bytes : 8192, messages = zoo_option(argc, argv, "messages", 1);
  char *out = zoo_memory(bytes), *in = zoo_memory(bytes);
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step);
    for (int i = 0; i < (int)messages; ++i) zoo_ring(&zoo, out, in, bytes);
  }
  free(out);
  free(in);
  return zoo_end(&zoo);
}
