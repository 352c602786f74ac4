/* Each rank computes on arrays in the memory of another NUMA node. Repaired: of its own node. A rank binds itself to the
 * cores of a node, if nobody did; a machine with one node plants nothing. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "zoo.h"

enum { kBind = 2, kNodes = 64 };

/* Cores of a node are listed in sysfs, as 0-3,8-11. Returns how many there are. */
static int cores_of(int node, cpu_set_t* cores) {
  char name[96];
  int from, to, count = 0;
  CPU_ZERO(cores);
  snprintf(name, sizeof name, "/sys/devices/system/node/node%d/cpulist", node);
  FILE* list = fopen(name, "r");
  if (list == NULL) return 0;
  while (fscanf(list, "%d", &from) == 1) {
    to = from;
    if (fscanf(list, "-%d", &to) < 0) to = from;
    for (int core = from; core <= to; ++core, ++count) CPU_SET(core, cores);
    if (fgetc(list) != ',') break;
  }
  fclose(list);
  return count;
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const long count = 1000000;
  int nodes[kNodes], found = 0;
  cpu_set_t cores;
  for (int node = 0; node < kNodes; ++node) {
    if (cores_of(node, &cores) > 0) nodes[found++] = node;
  }
  const int own = found > 0 ? nodes[zoo.rank % found] : 0, other = found > 0 ? nodes[(zoo.rank + 1) % found] : 0;
  if (found > 1) {
    cores_of(own, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    unsigned long mask = 1ul << (zoo.repaired ? own : other);
    syscall(SYS_set_mempolicy, kBind, &mask, 8 * sizeof mask);
  }
  double *a = (double*)zoo_memory(count * sizeof(double)), *b = (double*)zoo_memory(count * sizeof(double));
  char out[4096] = {0}, in[4096];
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    for (int turn = 0; turn < 4; ++turn) {
      for (long i = 0; i < count; ++i) a[i] = 0.999 * b[i] + 1e-9 * a[i];
      zoo_sink += a[17];
    }
    zoo_ring(&zoo, out, in, sizeof out);
  }
  free(a);
  free(b);
  return zoo_end(&zoo);
}
