/* Many messages of 64 B, one by one, to a neighbour. Repaired: one message that has them all. */
#include "zoo.h"

enum { kBytes = 64 };
static char *out, *in;

static void exchange(const struct Zoo* zoo, double count) {
  for (int i = 0; i < (int)count; ++i) zoo_ring(zoo, out + kBytes * i, in + kBytes * i, kBytes);
}

static void exchange_at_once(const struct Zoo* zoo, double count) { zoo_ring(zoo, out, in, (int)count * kBytes); }

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double probe = 500, most = 10000, taken = zoo.size * zoo.step;
  out = zoo_memory(most * kBytes);
  in = zoo_memory(most * kBytes);
  double count = probe * zoo_repetitions(&zoo, exchange, probe, taken);
  if (count > most) count = most;
  const double saved = zoo_duration(&zoo, exchange, count) - zoo_duration(&zoo, exchange_at_once, count);
  if (!zoo.repaired && saved > 0) zoo.expected = zoo.steps * saved;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step - taken);
    if (zoo.repaired) {
      exchange_at_once(&zoo, count);
    } else {
      exchange(&zoo, count);
    }
  }
  free(out);
  free(in);
  return zoo_end(&zoo);
}
