/* Many messages of 64 B, one by one, to a neighbour. Repaired: one message that has them all. */
#include "zoo.h"

enum { kBytes = 64 };
static char *out, *in;

static void exchange(const struct Zoo* zoo, double count) {
  for (int i = 0; i < (int)count; ++i) zoo_ring(zoo, out + kBytes * i, in + kBytes * i, kBytes);
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double probe = 500, most = 10000, taken = zoo.size * zoo.step;
  out = zoo_memory(most * kBytes);
  in = zoo_memory(most * kBytes);
  double count = probe * zoo_repetitions(&zoo, exchange, probe, taken);
  if (count > most) count = most;
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step - taken);
    if (zoo.repaired) {
      zoo_ring(&zoo, out, in, (int)count * kBytes);
    } else {
      exchange(&zoo, count);
    }
  }
  free(out);
  free(in);
  return zoo_end(&zoo);
}
