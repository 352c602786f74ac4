/* Broadcasts over MPI (elbowroom/broadcast_mpi.h), checked byte by byte. Each argument is a part of main's table; rank 0
 * prints how many checks failed on all ranks: `trees: 0 of 1234 checks failed`. Used by tests/mpi/test_broadcast.py. */
#include <elbowroom/broadcast_mpi.h>
#include <errno.h>
#include <stdio.h>

enum { MOST = 1 << 20, RANKS = 64 };

static int rank, ranks;
static long checks, failures;
static MPI_Comm own;
static elbow_broadcast* broadcast;

static void expect(int held, const char* what, long which) {
  ++checks;
  if (held) return;
  if (++failures <= 5) fprintf(stderr, "rank %d: %s (%ld): %s\n", rank, what, which, elbow_broadcast_error());
}

static void begin(const elbow_broadcast_settings* settings) {
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own);
  broadcast = elbow_broadcast_new(&transport, settings);
  if (broadcast == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void end(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  elbow_broadcast_free(broadcast);
  MPI_Comm_free(&own);
}

static unsigned char byte_of(size_t at, unsigned seed) {
  return (unsigned char)((at * 31 + at / 251 + seed * 17) & 255);
}

static unsigned char* filled(size_t size, unsigned seed) {
  unsigned char* const data = malloc(size + 1);
  for (size_t at = 0; at < size; ++at) data[at] = byte_of(at, seed);
  return data;
}

static int is_right(const unsigned char* data, size_t size, unsigned seed) {
  for (size_t at = 0; at < size; ++at)
    if (data[at] != byte_of(at, seed)) return 0;
  return 1;
}

static size_t others(int root, elbow_broadcast_recipient* recipients) {
  size_t count = 0;
  for (int to = 0; to < ranks; ++to)
    if (to != root) recipients[count++] = (elbow_broadcast_recipient){to, to * 7 % 3};
  return count;
}

/* One broadcast from `root` to all; those with an odd number post their receive when the data may be there already. */
static void send_one(int root, int64_t tag, size_t size, const char* tree, size_t segment, unsigned seed) {
  elbow_broadcast_operation operation = 0;
  if (rank == root) {
    elbow_broadcast_recipient recipients[RANKS];
    const size_t count = others(root, recipients);
    const elbow_broadcast_way way = {sizeof way, tree, segment};
    unsigned char* const data = filled(size, seed);
    expect(elbow_broadcast_send(broadcast, 3, tag, data, size, recipients, count, &way, &operation) == 0, tree, seed);
    expect(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0, tree, seed);
    free(data);
    return;
  }
  unsigned char* const data = calloc(size + 1, 1);
  for (int i = 0; rank % 2 == 1 && i < 200; ++i) elbow_broadcast_progress(broadcast);
  expect(elbow_broadcast_receive(broadcast, 3, root, tag, data, size, &operation) == 0, tree, seed);
  expect(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RECEIVED) == 0, tree, seed);
  expect(is_right(data, size, seed), "wrong data", seed);
  expect(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0, tree, seed);
  free(data);
}

static const char* const kTrees[] = {
    "flat", "chain", "binary", "4-ary", "binomial", "8-nomial", "delegate-flat", "split3-binary", "two-level-binomial",
    "two"};

static void trees(void) {
  uint16_t groups[RANKS];
  double speeds[RANKS];
  for (int i = 0; i < ranks; ++i) groups[i] = (uint16_t)(i / 3);
  for (int i = 0; i < ranks; ++i) speeds[i] = i % 5 == 1 ? 0.2 : 1;
  const elbow_broadcast_settings settings = {.size = sizeof settings, .groups = groups, .speeds = speeds};
  const size_t sizes[] = {0, 1, 4096, 4097, 300000, MOST};
  const size_t segments[] = {0, 10000, 65536};
  begin(&settings);
  unsigned seed = 0;
  for (size_t tree = 0; tree < sizeof kTrees / sizeof *kTrees; ++tree)
    for (size_t size = 0; size < 6; ++size)
      for (size_t segment = 0; segment < 3; ++segment, ++seed)
        if (sizes[size] < MOST || segment == tree % 3)
          send_one((int)seed % ranks, (int64_t)seed - 50, sizes[size], kTrees[tree], segments[segment], seed);
  end();
}

/* All are under way at once, and are received in the opposite order. */
static void tags(void) {
  enum { COUNT = 24 };
  elbow_broadcast_operation operations[COUNT];
  unsigned char* data[COUNT];
  elbow_broadcast_recipient recipients[RANKS];
  const size_t count = others(0, recipients);
  begin(NULL);
  for (int i = 0; i < COUNT; ++i) {
    const int tag = rank == 0 ? i : COUNT - 1 - i;
    const size_t size = (size_t)tag * 1500;
    if (rank == 0) {
      data[i] = filled(size, (unsigned)tag);
      const elbow_broadcast_way way = {sizeof way, kTrees[(size_t)tag % 10], 4000};
      expect(elbow_broadcast_send(broadcast, 0, tag, data[i], size, recipients, count, &way, &operations[i]) == 0,
             "send", tag);
    } else {
      data[i] = calloc(size + 1, 1);
      expect(elbow_broadcast_receive(broadcast, 0, 0, tag, data[i], size, &operations[i]) == 0, "receive", tag);
    }
  }
  for (int i = 0; i < COUNT; ++i) {
    expect(elbow_broadcast_wait(broadcast, operations[i], ELBOW_BROADCAST_RELEASED) == 0, "wait", i);
    const int tag = rank == 0 ? i : COUNT - 1 - i;
    expect(is_right(data[i], (size_t)tag * 1500, (unsigned)tag), "wrong data", tag);
    free(data[i]);
  }
  end();
}

/* One tag: every third version goes to each recipient by itself, the others by trees; all get them in the order sent. */
static void versions(void) {
  enum { COUNT = 30, SIZE = 9000 };
  elbow_broadcast_recipient recipients[RANKS];
  const size_t count = others(0, recipients);
  unsigned char* data[COUNT];
  begin(NULL);
  if (rank == 0) {
    elbow_broadcast_operation operations[COUNT * RANKS];
    size_t sent = 0;
    for (int i = 0; i < COUNT; ++i) {
      const elbow_broadcast_way way = {sizeof way, kTrees[i % 10], 2000};
      const size_t size = i % 2 == 0 ? SIZE : 100; /* small ones overtake */
      data[i] = filled(size, (unsigned)i);
      for (size_t one = 0; i % 3 == 0 && one < count; ++one)
        expect(
            elbow_broadcast_send(broadcast, 0, 1, data[i], size, recipients + one, 1, NULL, &operations[sent++]) == 0,
            "send", i);
      if (i % 3 != 0)
        expect(elbow_broadcast_send(broadcast, 0, 1, data[i], size, recipients, count, &way, &operations[sent++]) == 0,
               "send", i);
    }
    for (size_t i = 0; i < sent; ++i)
      expect(elbow_broadcast_wait(broadcast, operations[i], ELBOW_BROADCAST_RELEASED) == 0, "wait", (long)i);
    for (int i = 0; i < COUNT; ++i) free(data[i]);
  } else {
    for (int i = 0; i < COUNT; ++i) {
      const size_t size = i % 2 == 0 ? SIZE : 100;
      elbow_broadcast_operation operation = 0;
      unsigned char* const into = calloc(size, 1);
      expect(elbow_broadcast_receive(broadcast, 0, 0, 1, into, size, &operation) == 0, "receive", i);
      expect(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0, "wait", i);
      expect(is_right(into, size, (unsigned)i), "wrong version", i);
      free(into);
    }
  }
  end();
}

static void refuses(const elbow_broadcast_recipient* recipients, size_t count, const char* tree, const char* field) {
  const elbow_broadcast_way way = {sizeof way, tree, 0};
  elbow_broadcast_operation operation = 0;
  errno = 0;
  expect(elbow_broadcast_send(broadcast, 0, 0, "", 0, recipients, count, &way, &operation) == -1, "sent", 0);
  expect(errno == EINVAL && strncmp(elbow_broadcast_error(), field, strlen(field)) == 0, field, errno);
}

static void wrong(void) {
  begin(NULL);
  const int next = (rank + 1) % ranks;
  elbow_broadcast_operation operation = 0;
  refuses((elbow_broadcast_recipient[]){{ranks, 0}}, 1, NULL, "recipient ");
  refuses((elbow_broadcast_recipient[]){{-1, 0}}, 1, NULL, "recipient ");
  refuses((elbow_broadcast_recipient[]){{rank, 0}}, 1, NULL, "recipient ");
  refuses((elbow_broadcast_recipient[]){{next, 0}, {next, 1}}, 2, NULL, "recipient ");
  refuses((elbow_broadcast_recipient[]){{next, -1}}, 1, NULL, "priority ");
  refuses((elbow_broadcast_recipient[]){{next, 0}}, 1, "oak", "tree ");
  refuses(NULL, 0, NULL, "recipients");
  expect(elbow_broadcast_receive(broadcast, 0, rank, 0, NULL, 0, &operation) == -1 && errno == EINVAL, "root", rank);
  expect(elbow_broadcast_wait(broadcast, 77, ELBOW_BROADCAST_RECEIVED) == -1 && errno == EINVAL, "operation", 77);
  end();
}

/* Rank 1 receives too little; it alone fails. */
static void mismatch(void) {
  const size_t sizes[] = {100, 50000};
  begin(NULL);
  for (int i = 0; i < 2; ++i) {
    elbow_broadcast_recipient recipients[RANKS];
    elbow_broadcast_operation operation = 0;
    const size_t count = others(0, recipients);
    unsigned char* const data = filled(sizes[i], 0);
    if (rank == 0) {
      const elbow_broadcast_way way = {sizeof way, "chain", 8192};
      expect(elbow_broadcast_send(broadcast, 0, 0, data, sizes[i], recipients, count, &way, &operation) == 0, "send",
             i);
      expect(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0, "wait", i);
    } else {
      memset(data, 0, sizes[i]);
      const size_t size = sizes[i] - (rank == 1 ? 1 : 0);
      expect(elbow_broadcast_receive(broadcast, 0, 0, 0, data, size, &operation) == 0, "receive", i);
      const int result = elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED);
      if (rank == 1)
        expect(result == -1 && errno == ECOMM && strstr(elbow_broadcast_error(), "bytes, but") != NULL, "size", i);
      else
        expect(result == 0 && is_right(data, size, 0), "the others' data", i);
    }
    free(data);
  }
  end();
}

/* The last rank posts no receive, and may compute: the root's watchdog names it in an event, and the others have the data. */
static void absent(void) {
  const elbow_broadcast_settings settings = {.size = sizeof settings, .watchdog = 0.5, .late = ELBOW_BROADCAST_BYPASS};
  elbow_broadcast_event event = {.size = sizeof event};
  elbow_broadcast_recipient recipients[RANKS];
  elbow_broadcast_operation operation = 0;
  const size_t count = others(0, recipients);
  const size_t size = 100000;
  char name[32];
  snprintf(name, sizeof name, "rank %d;", ranks - 1);
  unsigned char* const data = filled(size, 1);
  begin(&settings);
  if (rank == 0) {
    expect(elbow_broadcast_send(broadcast, 0, 0, data, size, recipients, count,
                                &(elbow_broadcast_way){sizeof(elbow_broadcast_way), "flat", 0}, &operation) == 0,
           "send", 0);
    while (elbow_broadcast_next(broadcast, &event) == 0) {
    }
    expect(event.kind == ELBOW_BROADCAST_STALLED && event.operation == operation, "stall", event.kind);
    expect(strstr(event.text, name) != NULL, name, 0);
  } else if (rank < ranks - 1) {
    memset(data, 0, size);
    expect(elbow_broadcast_receive(broadcast, 0, 0, 0, data, size, &operation) == 0, "receive", 0);
    expect(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0 && is_right(data, size, 1), "data",
           0);
  }
  end();
  free(data);
}

/* One after another over communicators whose context MPI uses again: none gets messages of the one before. */
static void again(void) {
  for (unsigned i = 0; i < 60; ++i) {
    elbow_broadcast_event event = {.size = sizeof event};
    begin(NULL);
    send_one(0, 0, 9000, "flat", 3000, i);
    while (elbow_broadcast_next(broadcast, &event) == 1) expect(event.kind != ELBOW_BROADCAST_FAILED, event.text, i);
    elbow_broadcast_free(broadcast);
    MPI_Comm_free(&own);
  }
}

/* Control messages of one process happen in the order in which they were sent, long and short ones; those of other processes
 * do not wait for them. Each names its number, and its bytes follow from that. */
static void order(void) {
  enum { COUNT = 24 };
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own);
  int happened[RANKS] = {0};
  for (int i = 0; i < COUNT; ++i)
    for (int to = 0; to < ranks; ++to) {
      const size_t size = i % 3 == 0 ? 10000 + 5000 * (size_t)i : i % 3 == 1 ? 8192 : 9 + (size_t)i;
      if (to == rank) continue;
      unsigned char* const bytes = filled(size, (unsigned)i);
      bytes[0] = (unsigned char)(i + 1); /* not 0, with which the transport's own begin */
      expect(transport.send_control(transport.state, to, bytes, size) == 0, "send_control", i);
      free(bytes);
    }
  for (int left = COUNT * (ranks - 1); left > 0;) {
    elbow_broadcast_happening now = {.size = sizeof now};
    if (transport.poll(transport.state, &now) != 1 || now.kind != ELBOW_BROADCAST_CONTROL) continue;
    const int i = happened[now.peer]++;
    const unsigned char* const bytes = now.bytes;
    expect(bytes[0] == i + 1, "out of order", bytes[0]);
    expect(now.length > 8 && bytes[8] == byte_of(8, bytes[0] - 1U), "wrong bytes", i);
    expect(bytes[now.length - 1] == byte_of(now.length - 1, bytes[0] - 1U), "wrong end", i);
    --left;
  }
  transport.close(transport.state);
  MPI_Comm_free(&own);
}

/* The library's thread makes progress; the program only waits. */
static void thread(void) {
  begin(NULL);
  expect(elbow_broadcast_start(broadcast, -1) == 0, "start", 0);
  for (unsigned i = 0; i < 30; ++i) send_one((int)i % ranks, i, (size_t)i * 3000, kTrees[i % 10], 8192, i);
  expect(elbow_broadcast_stop(broadcast) == 0, "stop", 0);
  end();
}

/* Without MPI_THREAD_SERIALIZED at least there is no thread, and a sentence says why. */
static void confined(void) {
  begin(NULL);
  expect(elbow_broadcast_start(broadcast, -1) == -1 && errno == ENOTSUP, "start", errno);
  expect(strstr(elbow_broadcast_error(), "MPI_THREAD_MULTIPLE") != NULL, "sentence", 0);
  send_one(0, 0, 50000, "binomial", 0, 0);
  end();
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
    int level;
  } parts[] = {{"trees", trees, 0},       {"tags", tags, 0},
               {"versions", versions, 0}, {"wrong", wrong, 0},
               {"mismatch", mismatch, 0}, {"absent", absent, 0},
               {"again", again, 0},       {"confined", confined, 0},
               {"order", order, 0},       {"thread", thread, MPI_THREAD_MULTIPLE}};
  const int threaded = argc == 2 && strcmp(argv[1], "thread") == 0;
  int level = 0;
  MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int word = 1; word < argc; ++word)
    for (size_t part = 0; part < sizeof parts / sizeof *parts; ++part) {
      if (strcmp(argv[word], parts[part].name) != 0) continue;
      checks = failures = 0;
      if (level < parts[part].level) {
        if (rank == 0) printf("%s: this MPI allows threads up to level %d\n", argv[word], level);
        continue;
      }
      parts[part].run();
      long all[2] = {failures, checks};
      MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
      if (rank == 0) printf("%s: %ld of %ld checks failed\n", argv[word], all[0], all[1]);
    }
  MPI_Finalize();
  return 0;
}
