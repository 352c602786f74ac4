/* Tasks of every kind that the adapter to StarPU must see, each with a name; prints what the program itself counted. With an
 * argument: a Cholesky factorisation's tasks, and StarPU's own graph of them in that file; with "data FOLDER": tasks with
 * iterations and colours, more of them than may be submitted at once, and data that are copied to a disk and back. */
#include <pthread.h>
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                          \
  do {                                                       \
    if ((call) != 0) {                                       \
      fprintf(stderr, "%s:%d failed\n", __FILE__, __LINE__); \
      exit(1);                                               \
    }                                                        \
  } while (0)

static int ran, callbacks, prologues, pops;

static void nothing(void* buffers[], void* argument) {
  (void)buffers, (void)argument;
  __atomic_add_fetch(&ran, 1, __ATOMIC_RELAXED);
}
static void another(void* buffers[], void* argument) { nothing(buffers, argument); }
static void increment(void* buffers[], void* argument) {
  nothing(buffers, argument);
  ++*(int*)STARPU_VARIABLE_GET_PTR(buffers[0]);
}
static void zero(void* buffers[], void* argument) {
  (void)argument;
  *(int*)STARPU_VARIABLE_GET_PTR(buffers[0]) = 0;
}
static void sum(void* buffers[], void* argument) {
  (void)argument;
  *(int*)STARPU_VARIABLE_GET_PTR(buffers[0]) += *(int*)STARPU_VARIABLE_GET_PTR(buffers[1]);
}
static void on_callback(void* argument) { callbacks += strcmp(argument, "callback") == 0; }
static void on_prologue(void* argument) { prologues += strcmp(argument, "prologue") == 0; }
static void on_pop(void* argument) { pops += strcmp(argument, "pop") == 0; }

static struct starpu_codelet plain = {.cpu_funcs = {nothing}, .nbuffers = 0, .name = "plain"};
static struct starpu_codelet both = {.cpu_funcs = {nothing, another}, .nbuffers = 0, .name = "both"};
static struct starpu_codelet unnamed = {.cpu_funcs = {nothing}, .nbuffers = 0};
static struct starpu_codelet inc = {.cpu_funcs = {increment}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "increment"};
static struct starpu_codelet any = {.cpu_funcs = {nothing}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "any"};
static struct starpu_perfmodel model = {.type = STARPU_HISTORY_BASED, .symbol = "elbowroom_modelled"};
static struct starpu_codelet modelled = {
    .cpu_funcs = {nothing}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .model = &model, .name = "modelled"};
static struct starpu_codelet reduce = {
    .cpu_funcs = {sum}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_R}, .name = "sum"};
static struct starpu_codelet initialise = {.cpu_funcs = {zero}, .nbuffers = 1, .modes = {STARPU_W}, .name = "zero"};
static struct starpu_codelet elsewhere = {.where = STARPU_CUDA, .nbuffers = 0, .name = "elsewhere"};

static int numbers[16];
static starpu_data_handle_t data(int which) {
  starpu_data_handle_t handle;
  starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)&numbers[which], sizeof(int));
  return handle;
}

static struct starpu_codelet* used = &any;
/* A task that uses up to three pieces of data. */
static void use(const char* name, starpu_data_handle_t a, int in, starpu_data_handle_t b, int how,
                starpu_data_handle_t c, int what) {
  struct starpu_task* task = starpu_task_create();
  task->cl = used;
  task->name = name;
  task->nbuffers = 1 + (b != NULL) + (c != NULL);
  starpu_data_handle_t handles[] = {a, b, c};
  int modes[] = {in, how, what};
  for (int i = 0; i < task->nbuffers; ++i) {
    task->handles[i] = handles[i];
    task->modes[i] = (enum starpu_data_access_mode)modes[i];
  }
  CHECK(starpu_task_submit(task));
}
static void one(const char* name, starpu_data_handle_t a, int mode) { use(name, a, mode, NULL, 0, NULL, 0); }

static void by_data(void) {
  starpu_data_handle_t x = data(0), a = data(1), b = data(2), c = data(3), y = data(4), z = data(5);
  one("chain 0", x, STARPU_RW);
  one("chain 1", x, STARPU_RW);
  one("chain 2", x, STARPU_RW);
  one("diamond 0", a, STARPU_W);
  use("diamond 1", a, STARPU_R, b, STARPU_W, NULL, 0);
  use("diamond 2", a, STARPU_R, c, STARPU_W, NULL, 0);
  use("diamond 3", b, STARPU_R, c, STARPU_R, a, STARPU_W);
  one("write 0", y, STARPU_W);
  one("read 0", y, STARPU_R);
  one("read 1", y, STARPU_R);
  one("write 1", y, STARPU_W);
  one("commute 0", y, STARPU_RW | STARPU_COMMUTE);
  one("commute 1", y, STARPU_RW | STARPU_COMMUTE);
  one("read 2", y, STARPU_R);
  use("twice", y, STARPU_R, y, STARPU_W, NULL, 0);
  one("after twice", y, STARPU_R);
  one("scratch", y, STARPU_SCRATCH);
  starpu_data_set_sequential_consistency_flag(z, 0);
  one("unordered 0", z, STARPU_RW);
  one("unordered 1", z, STARPU_RW);
  CHECK(starpu_task_wait_for_all());
  starpu_data_handle_t all[] = {x, a, b, c, y, z};
  for (int i = 0; i < 6; ++i) {
    starpu_data_unregister(all[i]);
  }
  /* Data that may lie where others did. */
  x = data(0);
  one("anew", x, STARPU_RW);
  starpu_data_unregister(x);
}

static void by_reduction(void) {
  starpu_data_handle_t total = data(6);
  starpu_data_set_reduction_methods(total, &reduce, &initialise);
  struct starpu_codelet add = inc;
  add.modes[0] = STARPU_REDUX;
  for (int i = 0; i < 3; ++i) {
    CHECK(starpu_task_insert(&add, STARPU_REDUX, total, STARPU_NAME, i == 0 ? "add 0" : i == 1 ? "add 1" : "add 2", 0));
  }
  one("total", total, STARPU_R);
  starpu_data_unregister(total);
}

static struct starpu_task* named(const char* name, struct starpu_codelet* codelet) {
  struct starpu_task* task = starpu_task_create();
  task->name = name;
  task->cl = codelet;
  return task;
}

static void by_word(void) {
  struct starpu_task *first = named("first", &plain), *second = named("second", &both), *third = named("third", &plain),
                     *empty = named("empty", NULL), *last = named("last", &unnamed);
  starpu_task_declare_deps(third, 2, first, second);
  struct starpu_task* before[] = {third};
  starpu_task_declare_deps_array(empty, 1, before);
  starpu_task_declare_deps(last, 1, empty);
  empty->callback_func = on_callback;
  empty->callback_arg = strdup("callback");
  empty->callback_arg_free = 1;
  empty->prologue_callback_func = on_prologue;
  empty->prologue_callback_arg = strdup("prologue");
  empty->prologue_callback_arg_free = 1;
  third->prologue_callback_func = on_prologue;
  third->prologue_callback_arg = "prologue";
  third->prologue_callback_pop_func = on_pop;
  third->prologue_callback_pop_arg = "pop";
  third->callback_func = on_callback;
  third->callback_arg = "callback";
  struct starpu_task* all[] = {last, empty, third, second, first};
  for (int i = 0; i < 5; ++i) {
    CHECK(starpu_task_submit(all[i]));
  }
  struct starpu_task *early = named("early", &plain), *late = named("late", &plain);
  early->use_tag = late->use_tag = 1;
  early->tag_id = 11;
  late->tag_id = 12;
  starpu_tag_declare_deps(12, 1, (starpu_tag_t)11);
  CHECK(starpu_task_submit(late));
  CHECK(starpu_task_submit(early));
  starpu_tag_wait(12);
  CHECK(starpu_task_wait_for_all());
  CHECK(starpu_task_submit(named("refused", &elsewhere)) != -ENODEV);
}

/* A task that is submitted twice is two; a codelet's copy is as good as itself. */
static void again(void) {
  struct starpu_codelet copy = plain;
  struct starpu_task task;
  starpu_task_init(&task);
  task.cl = &copy;
  task.name = "again";
  task.detach = 0;
  for (int i = 0; i < 2; ++i) {
    CHECK(starpu_task_submit(&task));
    CHECK(starpu_task_wait(&task));
  }
  starpu_task_clean(&task);
}

static void* submit_many(void* argument) {
  starpu_data_handle_t own = argument;
  for (int i = 0; i < 50; ++i) {
    CHECK(starpu_task_insert(&inc, STARPU_RW, own, STARPU_NAME, "many", 0));
  }
  return NULL;
}

static void from_threads(void) {
  starpu_data_handle_t both_data[] = {data(7), data(8)};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(pthread_create(&threads[i], NULL, submit_many, both_data[i]));
  }
  for (int i = 0; i < 2; ++i) {
    CHECK(pthread_join(threads[i], NULL));
    starpu_data_unregister(both_data[i]);
  }
}

enum { kTiles = 5 };
static void cholesky(const char* path) {
  starpu_data_handle_t tile[kTiles][kTiles];
  static int values[kTiles][kTiles];
  static char names[200][32];
  int count = 0;
  for (int i = 0; i < kTiles; ++i) {
    for (int j = 0; j <= i; ++j) {
      starpu_variable_data_register(&tile[i][j], STARPU_MAIN_RAM, (uintptr_t)&values[i][j], sizeof(int));
    }
  }
  starpu_pause(); /* so that no task is done before StarPU has seen who waits for it */
  starpu_bound_start(1, 0);
  used = &modelled; /* StarPU's graph has tasks with a model only */
  for (int k = 0; k < kTiles; ++k) {
    snprintf(names[count], 32, "potrf %d", k);
    one(names[count++], tile[k][k], STARPU_RW);
    for (int i = k + 1; i < kTiles; ++i) {
      snprintf(names[count], 32, "trsm %d %d", i, k);
      use(names[count++], tile[k][k], STARPU_R, tile[i][k], STARPU_RW, NULL, 0);
    }
    for (int i = k + 1; i < kTiles; ++i) {
      snprintf(names[count], 32, "syrk %d %d", i, k);
      use(names[count++], tile[i][k], STARPU_R, tile[i][i], STARPU_RW, NULL, 0);
      for (int j = k + 1; j < i; ++j) {
        snprintf(names[count], 32, "gemm %d %d %d", i, j, k);
        use(names[count++], tile[i][k], STARPU_R, tile[j][k], STARPU_R, tile[i][j], STARPU_RW);
      }
    }
  }
  starpu_bound_stop();
  starpu_resume();
  CHECK(starpu_task_wait_for_all());
  FILE* file = fopen(path, "w");
  starpu_bound_print_dot(file);
  CHECK(fclose(file));
  for (int i = 0; i < kTiles; ++i) {
    for (int j = 0; j <= i; ++j) {
      starpu_data_unregister(tile[i][j]);
    }
  }
}

static void rest(void* buffers[], void* argument) {
  nothing(buffers, argument);
  usleep(20000);
}
static struct starpu_codelet slow = {.cpu_funcs = {rest}, .nbuffers = 1, .modes = {STARPU_R}, .name = "slow"};

/* Two tasks that run only together, which a third one makes ready: one of them leaves its worker's queue for the other's. */
static int both_submitted, met;
static void wait_until(const int* value, int least) {
  for (int i = 0; i < 60000 && __atomic_load_n(value, __ATOMIC_ACQUIRE) < least; ++i) {
    usleep(1000);
  }
}
static void hold_back(void* buffers[], void* argument) {
  nothing(buffers, argument);
  wait_until(&both_submitted, 1);
}
static void meet(void* buffers[], void* argument) {
  nothing(buffers, argument);
  __atomic_add_fetch(&met, 1, __ATOMIC_RELEASE);
  wait_until(&met, 2);
}
static struct starpu_codelet first_of_three = {
    .cpu_funcs = {hold_back}, .nbuffers = 1, .modes = {STARPU_W}, .name = "first of three"};
static struct starpu_codelet meeting = {.cpu_funcs = {meet}, .nbuffers = 1, .modes = {STARPU_R}, .name = "meet"};

static void together(starpu_data_handle_t vector) {
  CHECK(starpu_task_insert(&first_of_three, STARPU_W, vector, 0));
  CHECK(starpu_task_insert(&meeting, STARPU_R, vector, 0));
  CHECK(starpu_task_insert(&meeting, STARPU_R, vector, 0));
  __atomic_store_n(&both_submitted, 1, __ATOMIC_RELEASE);
  CHECK(starpu_task_wait_for_all());
}

static void described(const char* folder) {
  enum { kBytes = 1 << 20 };
  static char values[kBytes];
  const int disk = starpu_disk_register(&starpu_disk_unistd_ops, (void*)folder, 16 * kBytes);
  CHECK(disk < 0);
  starpu_data_handle_t vector;
  starpu_vector_data_register(&vector, STARPU_MAIN_RAM, (uintptr_t)values, kBytes, 1);
  starpu_data_set_name(vector, "vector");
  for (unsigned long round = 0; round < 3; ++round) {
    starpu_iteration_push(10 + round);
    for (int i = 0; i < 4; ++i) {
      CHECK(starpu_task_insert(&slow, STARPU_R, vector, STARPU_TASK_COLOR, 0xff8000, 0));
    }
    starpu_iteration_pop();
  }
  CHECK(starpu_task_wait_for_all());
  together(vector);
  CHECK(starpu_data_prefetch_on_node(vector, (unsigned)disk, 0));
  starpu_data_unregister(vector);
}

int main(int argc, char** argv) {
  struct starpu_conf conf;
  CHECK(starpu_conf_init(&conf));
  conf.ncpus = 2;
  conf.nopencl = 0;
  CHECK(starpu_init(&conf));
  if (argc > 2) {
    described(argv[2]);
  } else if (argc > 1) {
    cholesky(argv[1]);
  } else {
    by_data();
    by_reduction();
    by_word();
    again();
    from_threads();
  }
  starpu_shutdown();
  printf("ran %d callbacks %d prologues %d pops %d total %d many %d %d\n", ran, callbacks, prologues, pops, numbers[6],
         numbers[7], numbers[8]);
  return 0;
}
