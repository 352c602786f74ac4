/* Does all kinds of things with MPI on three processes, and writes down what it did: ledger-RANK.txt in the folder it is
 * given, with a line for each call, message sent and message received. Every message says who it is, so that it is known
 * which one was received. Ends with 1 where a result is wrong. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE* ledger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rank, size, made;

static void write_down(const char* what, int id, int peer, int tag, int bytes) {
  pthread_mutex_lock(&lock);
  fprintf(ledger, "%s %d %d %d %d\n", what, id, peer, tag, bytes);
  pthread_mutex_unlock(&lock);
}

static int called(const char* name) {
  pthread_mutex_lock(&lock);
  fprintf(ledger, "call MPI_%s\n", name);
  pthread_mutex_unlock(&lock);
  return 0;
}
#define DO(name, ...) (called(#name), MPI_##name(__VA_ARGS__))

static void must(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
    exit(1);
  }
}

/* A message of some ints, whose first says who it is; `to` in MPI_COMM_WORLD. */
static void fill(int* message, int to, int tag, int ints) {
  pthread_mutex_lock(&lock);
  message[0] = rank * 100000 + ++made;
  pthread_mutex_unlock(&lock);
  write_down("sent", message[0], to, tag, 4 * ints);
}
static void got(const int* message, int from, int tag, int ints) { write_down("got", message[0], from, tag, 4 * ints); }

static void blocking(void) {
  int message[8] = {0};
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  char room[1000 + MPI_BSEND_OVERHEAD];
  char* given;
  int bytes;
  DO(Buffer_attach, room, sizeof room);
  fill(message, next, 1, 8);
  DO(Bsend, message, 8, MPI_INT, next, 1, MPI_COMM_WORLD);
  DO(Recv, message, 8, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  got(message, last, 1, 8);
  DO(Buffer_detach, &given, &bytes);
  for (int i = 0; i < 3; ++i) {
    if (rank == 0) {
      MPI_Status status;
      DO(Recv, message, 8, MPI_INT, 1, 2, MPI_COMM_WORLD, &status);
      must(status.MPI_SOURCE == 1 && status.MPI_TAG == 2, "status of a receive");
      got(message, 1, 2, 3);
    } else if (rank == 1) {
      fill(message, 0, 2, 3);
      if (i == 0) {
        DO(Ssend, message, 3, MPI_INT, 0, 2, MPI_COMM_WORLD);
      } else {
        DO(Send, message, 3, MPI_INT, 0, 2, MPI_COMM_WORLD);
      }
    }
  }
  /* Nobody, nothing, every second int. */
  DO(Send, message, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
  DO(Recv, message, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Datatype pairs;
  DO(Type_vector, 3, 1, 2, MPI_INT, &pairs);
  DO(Type_commit, &pairs);
  if (rank == 1) {
    DO(Send, NULL, 0, MPI_INT, 2, 4, MPI_COMM_WORLD);
    write_down("sent", 0, 2, 4, 0);
    fill(message, 2, 5, 3);
    DO(Send, message, 1, pairs, 2, 5, MPI_COMM_WORLD);
  } else if (rank == 2) {
    DO(Recv, NULL, 0, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    write_down("got", 0, 1, 4, 0);
    DO(Recv, message, 1, pairs, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    got(message, 1, 5, 3);
  }
  DO(Type_free, &pairs);
  DO(Barrier, MPI_COMM_WORLD);
}

/* Rank 0 takes whatever comes: what it is, the message says. */
static void wildcards(void) {
  int message[2] = {0};
  for (int i = 0; i < 4; ++i) {
    if (rank != 0) {
      fill(message, 0, 10 + i % 2, 2);
      message[1] = 10 + i % 2;
      DO(Send, message, 2, MPI_INT, 0, 10 + i % 2, MPI_COMM_WORLD);
    } else {
      DO(Recv, message, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      got(message, message[0] / 100000, message[1], 2);
      DO(Recv, message, 2, MPI_INT, MPI_ANY_SOURCE, 10 + i % 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      got(message, message[0] / 100000, message[1], 2);
    }
    DO(Barrier, MPI_COMM_WORLD);
  }
  /* One for anybody posted before one for rank 1: it gets the first message, and is waited for last. */
  if (rank == 0) {
    int first[2], second[2];
    MPI_Request requests[2];
    DO(Irecv, first, 2, MPI_INT, MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &requests[0]);
    DO(Irecv, second, 2, MPI_INT, 1, 12, MPI_COMM_WORLD, &requests[1]);
    DO(Barrier, MPI_COMM_WORLD);
    DO(Wait, &requests[1], MPI_STATUS_IGNORE);
    got(second, 1, 12, 2);
    DO(Wait, &requests[0], MPI_STATUS_IGNORE);
    got(first, 1, 12, 2);
    must(first[0] < second[0], "order of receives");
  } else {
    DO(Barrier, MPI_COMM_WORLD);
    for (int i = 0; rank == 1 && i < 2; ++i) {
      fill(message, 0, 12, 2);
      DO(Send, message, 2, MPI_INT, 0, 12, MPI_COMM_WORLD);
    }
  }
}

/* Ranks 0 and 1: six messages, completed in all ways; long ones are on their way for a while. */
static void orders(void) {
  enum { kMany = 6, kInts = 20000 };
  static int messages[kMany][kInts];
  MPI_Request requests[kMany];
  MPI_Status statuses[kMany];
  int indices[kMany], count, flag;
  if (rank == 2) {
    return;
  }
  for (int way = 0; way < 6; ++way) {
    const int ints = way % 2 == 0 ? 4 : kInts;
    for (int i = 0; i < kMany; ++i) {
      if (rank == 0) {
        fill(messages[i], 1, 20 + way, ints);
        DO(Isend, messages[i], ints, MPI_INT, 1, 20 + way, MPI_COMM_WORLD, &requests[i]);
      } else {
        DO(Irecv, messages[i], kInts, MPI_INT, 0, 20 + way, MPI_COMM_WORLD, &requests[i]);
      }
    }
    if (rank == 0) {
      DO(Waitall, kMany, requests, MPI_STATUSES_IGNORE);
      continue;
    }
    switch (way) {
      case 0:
        for (int i = kMany - 1; i >= 0; --i) {
          DO(Wait, &requests[i], MPI_STATUS_IGNORE);
          got(messages[i], 0, 20, ints);
        }
        break;
      case 1:
        DO(Waitall, kMany, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < kMany; ++i) {
          got(messages[i], 0, 21, ints);
        }
        break;
      case 2:
      case 3:
        for (int i = 0; i < kMany; ++i) {
          if (way == 2) {
            DO(Waitany, kMany, requests, &indices[0], MPI_STATUS_IGNORE);
          } else {
            for (flag = 0; !flag;) {
              DO(Testany, kMany, requests, &indices[0], &flag, &statuses[0]);
            }
          }
          got(messages[indices[0]], 0, 20 + way, ints);
        }
        break;
      default:
        for (int left = kMany; left > 0; left -= count) {
          if (way == 4) {
            DO(Waitsome, kMany, requests, &count, indices, statuses);
          } else {
            DO(Testsome, kMany, requests, &count, indices, MPI_STATUSES_IGNORE);
          }
          for (int i = 0; i < count; ++i) {
            got(messages[indices[i]], 0, 20 + way, ints);
          }
        }
    }
  }
}

static void persistent(void) {
  int out[4] = {0}, in[4], flag;
  MPI_Request requests[2];
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  DO(Send_init, out, 4, MPI_INT, next, 30, MPI_COMM_WORLD, &requests[0]);
  DO(Recv_init, in, 4, MPI_INT, MPI_ANY_SOURCE, 30, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    fill(out, next, 30, 4);
    if (i == 0) {
      DO(Start, &requests[1]);
      DO(Start, &requests[0]);
    } else {
      DO(Startall, 2, requests);
    }
    if (i == 1) {
      for (flag = 0; !flag;) {
        DO(Testall, 2, requests, &flag, MPI_STATUSES_IGNORE);
      }
    } else {
      DO(Waitall, 2, requests, MPI_STATUSES_IGNORE);
    }
    got(in, last, 30, 4);
  }
  DO(Request_free, &requests[0]);
  DO(Request_free, &requests[1]);
  fill(out, next, 31, 4);
  DO(Sendrecv, out, 4, MPI_INT, next, 31, in, 4, MPI_INT, last, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  got(in, last, 31, 4);
  fill(out, next, 31, 2);
  DO(Sendrecv_replace, out, 2, MPI_INT, next, 31, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  got(out, last, 31, 2);
}

/* A receive that nothing comes for, probes, matched messages. */
static void probes(void) {
  int message[2] = {0}, flag;
  MPI_Request request;
  MPI_Message matched;
  MPI_Status status;
  if (rank == 0) {
    DO(Irecv, message, 2, MPI_INT, 1, 40, MPI_COMM_WORLD, &request);
    DO(Cancel, &request);
    DO(Wait, &request, &status);
    MPI_Test_cancelled(&status, &flag);
    must(flag, "a receive is cancelled");
    DO(Barrier, MPI_COMM_WORLD);
    DO(Probe, 1, 40, MPI_COMM_WORLD, &status);
    DO(Recv, message, 2, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    got(message, 1, 40, 2);
    DO(Mprobe, MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, &matched, MPI_STATUS_IGNORE);
    DO(Recv, message, 2, MPI_INT, 1, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    got(message, 1, 40, 2);
    DO(Mrecv, message, 2, MPI_INT, &matched, MPI_STATUS_IGNORE);
    got(message, 1, 40, 2);
    for (flag = 0; !flag;) {
      DO(Improbe, 1, 40, MPI_COMM_WORLD, &flag, &matched, MPI_STATUS_IGNORE);
    }
    DO(Imrecv, message, 2, MPI_INT, &matched, &request);
    DO(Wait, &request, MPI_STATUS_IGNORE);
    got(message, 1, 40, 2);
  } else {
    DO(Barrier, MPI_COMM_WORLD);
    for (int i = 0; rank == 1 && i < 4; ++i) {
      fill(message, 0, 40, 2);
      DO(Send, message, 2, MPI_INT, 0, 40, MPI_COMM_WORLD);
    }
  }
}

/* One message around the members of a communicator; `world`: their ranks in MPI_COMM_WORLD. */
static void around(MPI_Comm communicator, const int* world, int tag) {
  int place, members, out[2] = {0}, in[2];
  DO(Comm_rank, communicator, &place);
  DO(Comm_size, communicator, &members);
  const int next = (place + 1) % members, last = (place + members - 1) % members;
  fill(out, world[next], tag, 2);
  DO(Sendrecv, out, 2, MPI_INT, next, tag, in, 2, MPI_INT, last, tag, communicator, MPI_STATUS_IGNORE);
  got(in, world[last], tag, 2);
}

static void communicators(void) {
  const int straight[] = {0, 1, 2}, reversed[] = {2, 1, 0}, two[] = {0, 2}, single[] = {1};
  MPI_Comm made_one, later, part, cart, inter, merged;
  MPI_Request request;
  DO(Comm_dup, MPI_COMM_WORLD, &made_one);
  around(made_one, straight, 50);
  DO(Comm_idup, made_one, &later, &request);
  DO(Wait, &request, MPI_STATUS_IGNORE);
  around(later, straight, 50);
  DO(Comm_free, &later);
  DO(Comm_split, made_one, 0, -rank, &later);
  around(later, reversed, 50);
  DO(Comm_free, &later);
  DO(Comm_free, &made_one);

  MPI_Group all, some;
  DO(Comm_group, MPI_COMM_WORLD, &all);
  DO(Group_incl, all, 2, two, &some);
  if (rank != 1) {
    DO(Comm_create_group, MPI_COMM_WORLD, some, 7, &part);
    around(part, two, 50);
    DO(Comm_free, &part);
  }
  DO(Comm_create, MPI_COMM_WORLD, some, &part);
  if (rank != 1) {
    around(part, two, 50);
    DO(Comm_free, &part);
  }
  DO(Group_free, &some);
  DO(Group_free, &all);

  const int dims[] = {3}, periodic[] = {1};
  DO(Cart_create, MPI_COMM_WORLD, 1, dims, periodic, 0, &cart);
  around(cart, straight, 50);
  DO(Comm_free, &cart);

  DO(Comm_split, MPI_COMM_WORLD, rank == 1, rank, &part);
  around(part, rank == 1 ? single : two, 51);
  DO(Intercomm_create, part, 0, MPI_COMM_WORLD, rank == 1 ? 0 : 1, 52, &inter);
  int message[2] = {0};
  if (rank == 1) { /* to rank 1 of the others: 2 */
    fill(message, 2, 53, 2);
    DO(Send, message, 2, MPI_INT, 1, 53, inter);
  } else if (rank == 2) {
    DO(Recv, message, 2, MPI_INT, MPI_ANY_SOURCE, 53, inter, MPI_STATUS_IGNORE);
    got(message, 1, 53, 2);
  }
  DO(Intercomm_merge, inter, rank == 1, &merged);
  const int order[] = {0, 2, 1};
  around(merged, order, 54);
  DO(Comm_free, &merged);
  DO(Comm_free, &inter);
  DO(Comm_free, &part);
}

static void collectives(void) {
  int mine = rank + 1, sum = 0, all[3] = {0}, more[3];
  MPI_Request request;
  DO(Allreduce, &mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  must(sum == 6, "sum");
  sum = mine;
  DO(Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  must(sum == 6, "sum in place");
  all[rank] = mine;
  DO(Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
  must(all[0] == 1 && all[1] == 2 && all[2] == 3, "allgather in place");
  if (rank == 2) {
    DO(Gather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, 2, MPI_COMM_WORLD);
  } else {
    DO(Gather, &mine, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 2, MPI_COMM_WORLD);
  }
  const int counts[] = {1, 1, 1}, places[] = {0, 1, 2};
  DO(Alltoallv, all, counts, places, MPI_INT, more, counts, places, MPI_INT, MPI_COMM_WORLD);
  DO(Ibcast, more, 3, MPI_INT, 1, MPI_COMM_WORLD, &request);
  DO(Wait, &request, MPI_STATUS_IGNORE);
  DO(Ibarrier, MPI_COMM_WORLD, &request);
  DO(Wait, &request, MPI_STATUS_IGNORE);
  DO(Bcast, more, 3, MPI_INT, 0, MPI_COMM_WORLD);
  DO(Pcontrol, 1);
  DO(Barrier, MPI_COMM_WORLD);
  DO(Pcontrol, 0);

  int memory = 0;
  MPI_Win window;
  DO(Win_create, &memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  DO(Win_fence, 0, window);
  DO(Put, &mine, 1, MPI_INT, (rank + 1) % 3, 0, 1, MPI_INT, window);
  DO(Win_fence, 0, window);
  must(memory == (rank + 2) % 3 + 1, "put");
  DO(Win_free, &window);
}

/* What only newer MPIs have. */
static void newest(void) {
#if MPI_VERSION >= 4
  int message[2] = {0};
  if (rank == 0) {
    fill(message, 1, 60, 2);
    DO(Send_c, message, 2, MPI_INT, 1, 60, MPI_COMM_WORLD);
  } else if (rank == 1) {
    DO(Recv_c, message, 2, MPI_INT, MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    got(message, 0, 60, 2);
  }
#endif
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  int out[4] = {0}, in[4];
  MPI_Request requests[2];
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  DO(Psend_init, out, 2, 2, MPI_INT, next, 61, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  DO(Precv_init, in, 2, 2, MPI_INT, last, 61, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int i = 0; i < 2; ++i) {
    fill(out, next, 61, 4);
    DO(Startall, 2, requests);
    DO(Pready, 0, requests[0]);
    DO(Pready, 1, requests[0]);
    DO(Waitall, 2, requests, MPI_STATUSES_IGNORE);
    got(in, last, 61, 4);
  }
  DO(Request_free, &requests[0]);
  DO(Request_free, &requests[1]);
#endif
}

static void* chat(void* which) {
  const int tag = 70 + (int)(size_t)which;
  int message[4] = {0};
  for (int i = 0; i < 50; ++i) {
    for (int turn = 0; turn < 2; ++turn) {
      if (rank == turn) {
        fill(message, 1 - rank, tag, 4);
        DO(Send, message, 4, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD);
      } else {
        DO(Recv, message, 4, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        got(message, 1 - rank, tag, 4);
      }
    }
  }
  return NULL;
}

static void threads(void) {
  pthread_t other;
  if (rank == 2) {
    return;
  }
  pthread_create(&other, NULL, chat, (void*)1);
  chat((void*)0);
  pthread_join(other, NULL);
}

int main(int count, char** words) {
  int provided;
  char path[1000];
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(path, sizeof path, "%s/ledger-%d.txt", words[1], rank);
  ledger = fopen(path, "w");
  setvbuf(ledger, NULL, _IOLBF, BUFSIZ);
  called("Init_thread");
  called("Comm_rank");
  called("Comm_size");
  blocking();
  if (count > 2) {
    if (rank == 1 && strcmp(words[2], "abort") == 0) {
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (rank == 1) {
      raise(SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  wildcards();
  orders();
  persistent();
  probes();
  communicators();
  collectives();
  newest();
  if (provided == MPI_THREAD_MULTIPLE) {
    threads();
  }
  DO(Finalize);
  fclose(ledger);
  return 0;
}
