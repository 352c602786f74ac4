/* Messages just above the library's limit for eager sends. Repaired: of half that, in the same number. */
#include "zoo.h"

static char *out, *in;

static void exchange(const struct Zoo* zoo, double bytes) {
  for (int i = 0; i < 200; ++i) zoo_ring(zoo, out, in, bytes);
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
#ifdef MPICH_VERSION
  const double usual = 17000;
#else
  const double usual = 4200;
#endif
  const double bytes = zoo.bytes > 0 ? zoo.bytes : usual, taken = zoo.size * zoo.step;
  out = zoo_memory(bytes);
  in = zoo_memory(bytes);
  const int count = (int)(200 * zoo_repetitions(&zoo, exchange, bytes, taken));
  const double saved = zoo_duration(&zoo, exchange, bytes) - zoo_duration(&zoo, exchange, bytes / 2);
  if (!zoo.repaired && saved > 0) zoo.expected = zoo.steps * saved * count / 200;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step - taken);
    for (int i = 0; i < count; ++i) zoo_ring(&zoo, out, in, zoo.repaired ? bytes / 2 : bytes);
  }
  free(out);
  free(in);
  return zoo_end(&zoo);
}
