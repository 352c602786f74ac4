/* elbow_broadcast_transport of an MPI communicator, for elbowroom/broadcast.h. A header only: it is compiled with the program's own
 * MPI.
 *
 *     MPI_Comm own;
 *     MPI_Comm_dup(MPI_COMM_WORLD, &own);                 messages of broadcasts meet no others
 *     elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own);
 *     elbow_broadcast* broadcast = elbow_broadcast_new(&transport, NULL);
 *
 * elbow_broadcast_free is collective then: it receives what others still sent to this process, and leaves the communicator,
 * before MPI_Finalize. (MPI may use a freed communicator's context again, for which such messages would then be.) The
 * library's thread (elbow_broadcast_start) needs MPI_THREAD_MULTIPLE, or MPI_THREAD_SERIALIZED where nothing else calls MPI
 * meanwhile; with less, elbow_broadcast_start fails with ENOTSUP.
 *
 * Errors of MPI are MPI's to handle: by default they end the program.
 */
#ifndef ELBOWROOM_BROADCAST_MPI_H
#define ELBOWROOM_BROADCAST_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "elbowroom/broadcast.h"

/* NOLINTBEGIN(modernize-use-nullptr): C, too */

enum {
  ELBOW_BROADCAST_MPI_CONTROL = 0, /* tags */
  ELBOW_BROADCAST_MPI_LONG =
      1, /* control messages that exceed a buffer, after one of ELBOW_BROADCAST_MPI_LONG_SIZE bytes */
  ELBOW_BROADCAST_MPI_DATA = 2, /* and on: channels */
  ELBOW_BROADCAST_MPI_LONG_SIZE = 9,
  ELBOW_BROADCAST_MPI_BUFFER = 8192,
  ELBOW_BROADCAST_MPI_POSTED = 16,  /* receives of control messages */
  ELBOW_BROADCAST_MPI_SENDING = 64, /* control messages on their way whose memory need not be allocated */
  ELBOW_BROADCAST_MPI_LOOK = 64     /* transfers that one poll looks at */
};

/* What a request is for, besides ELBOW_BROADCAST_SENT and ELBOW_BROADCAST_ARRIVED: control messages in memory of their own. */
enum { ELBOW_BROADCAST_MPI_COPY = -1, ELBOW_BROADCAST_MPI_LONG_ARRIVES = -2 };

/* A control message that may not happen yet: it is long and under way, or behind such a one of the same process. */
typedef struct elbow_broadcast_mpi_waiting {
  struct elbow_broadcast_mpi_waiting* next;
  int peer;
  int here;
  size_t size;
  char* bytes;
} elbow_broadcast_mpi_waiting;

typedef struct elbow_broadcast_mpi_data {
  uint64_t ticket;
  int kind;
  int peer;
  char* owned; /* memory of a control message that was sent */
  size_t size;
  elbow_broadcast_mpi_waiting* waiting; /* of one that arrives */
} elbow_broadcast_mpi_data;

typedef struct elbow_broadcast_mpi {
  MPI_Comm communicator;
  int next;                             /* of the posted receives */
  int taken;                            /* its bytes are being read; it is posted again at the next poll */
  char* given;                          /* memory of the last control message, until the next poll */
  elbow_broadcast_mpi_waiting* waiting; /* in the order in which they were sent */
  MPI_Request posted[ELBOW_BROADCAST_MPI_POSTED];
  int next_sending;
  MPI_Request sending[ELBOW_BROADCAST_MPI_SENDING];
  MPI_Request* requests; /* first the next control message's, then those of `data` */
  int look;              /* where the next poll looks, if there are many */
  elbow_broadcast_mpi_data* data;
  int count;
  int room;
  unsigned long long* sent; /* messages of all kinds, by receiver */
  unsigned long long received;
  char (*receive_buffers)[ELBOW_BROADCAST_MPI_BUFFER];
  char (*send_buffers)[ELBOW_BROADCAST_MPI_BUFFER];
} elbow_broadcast_mpi;

static double elbow_broadcast_mpi_now(void* state) {
  (void)state;
  return MPI_Wtime();
}

static int elbow_broadcast_mpi_post(elbow_broadcast_mpi* self, int index) {
  return MPI_Irecv(self->receive_buffers[index], ELBOW_BROADCAST_MPI_BUFFER, MPI_BYTE, MPI_ANY_SOURCE,
                   ELBOW_BROADCAST_MPI_CONTROL, self->communicator, &self->posted[index]);
}

/* Room for one more; its request is then to be set. */
static int elbow_broadcast_mpi_grow(elbow_broadcast_mpi* self) {
  if (self->count < self->room) return 0;
  const int room = self->room == 0 ? 64 : 2 * self->room;
  elbow_broadcast_mpi_data* const data = (elbow_broadcast_mpi_data*)realloc(self->data, (size_t)room * sizeof *data);
  if (data == NULL) return -1;
  self->data = data;
  MPI_Request* const requests = (MPI_Request*)realloc(self->requests, ((size_t)room + 1) * sizeof(MPI_Request));
  if (requests == NULL) return -1;
  self->requests = requests;
  self->room = room;
  return 0;
}

/* Notes what the request behind the last one is for, and returns where it is to be put. */
static MPI_Request* elbow_broadcast_mpi_add(elbow_broadcast_mpi* self, int kind, int peer, uint64_t ticket, char* owned,
                                            size_t size) {
  if (elbow_broadcast_mpi_grow(self) != 0) return NULL;
  const elbow_broadcast_mpi_data item = {ticket, kind, peer, owned, size, NULL};
  self->data[self->count] = item;
  return &self->requests[++self->count];
}

static int elbow_broadcast_mpi_isend(elbow_broadcast_mpi* self, int peer, int tag, const void* bytes, size_t size,
                                     MPI_Request* request) {
  ++self->sent[peer];
  return MPI_Isend(bytes, (int)size, MPI_BYTE, peer, tag, self->communicator, request) == MPI_SUCCESS ? 0 : -1;
}

/* Sends a copy that is freed when it is sent. */
static int elbow_broadcast_mpi_send_copy(elbow_broadcast_mpi* self, int peer, int tag, const void* bytes, size_t size) {
  char* const copy = size <= INT_MAX ? (char*)malloc(size) : NULL;
  MPI_Request* const request =
      copy == NULL ? NULL : elbow_broadcast_mpi_add(self, ELBOW_BROADCAST_MPI_COPY, peer, 0, copy, size);
  if (request == NULL) {
    free(copy);
    return -1;
  }
  memcpy(copy, bytes, size);
  return elbow_broadcast_mpi_isend(self, peer, tag, copy, size, request);
}

/* Never waits: two processes that waited for each other's receives would wait for ever. */
static int elbow_broadcast_mpi_send_control(void* state, int peer, const void* bytes, size_t size) {
  elbow_broadcast_mpi* self = (elbow_broadcast_mpi*)state;
  char announcement[ELBOW_BROADCAST_MPI_LONG_SIZE] = {0};
  if (size > ELBOW_BROADCAST_MPI_BUFFER) {
    const uint64_t announced = size;
    if (elbow_broadcast_mpi_send_copy(self, peer, ELBOW_BROADCAST_MPI_LONG, bytes, size) != 0) return -1;
    memcpy(announcement + 1, &announced, sizeof announced);
    bytes = announcement;
    size = sizeof announcement;
  }
  const int index = self->next_sending;
  int done = 0;
  MPI_Test(&self->sending[index], &done, MPI_STATUS_IGNORE);
  if (!done) return elbow_broadcast_mpi_send_copy(self, peer, ELBOW_BROADCAST_MPI_CONTROL, bytes, size);
  self->next_sending = (index + 1) % ELBOW_BROADCAST_MPI_SENDING;
  memcpy(self->send_buffers[index], bytes, size);
  return elbow_broadcast_mpi_isend(self, peer, ELBOW_BROADCAST_MPI_CONTROL, self->send_buffers[index], size,
                                   &self->sending[index]);
}

static int elbow_broadcast_mpi_send_data(void* state, int peer, uint32_t channel, const void* data, size_t size,
                                         uint64_t ticket) {
  elbow_broadcast_mpi* self = (elbow_broadcast_mpi*)state;
  MPI_Request* const request = elbow_broadcast_mpi_add(self, ELBOW_BROADCAST_SENT, peer, ticket, NULL, size);
  if (request == NULL) return -1;
  return elbow_broadcast_mpi_isend(self, peer, ELBOW_BROADCAST_MPI_DATA + (int)channel, data, size, request);
}

static int elbow_broadcast_mpi_receive_data(void* state, int peer, uint32_t channel, void* data, size_t size,
                                            uint64_t ticket) {
  elbow_broadcast_mpi* self = (elbow_broadcast_mpi*)state;
  MPI_Request* const request = elbow_broadcast_mpi_add(self, ELBOW_BROADCAST_ARRIVED, peer, ticket, NULL, size);
  if (request == NULL) return -1;
  const int tag = ELBOW_BROADCAST_MPI_DATA + (int)channel;
  return MPI_Irecv(data, (int)size, MPI_BYTE, peer, tag, self->communicator, request) == MPI_SUCCESS ? 0 : -1;
}

static void elbow_broadcast_mpi_remove(elbow_broadcast_mpi* self, int index) {
  self->requests[1 + index] = self->requests[self->count];
  self->data[index] = self->data[--self->count];
}

/* Gives a receive up, unless its message is here already. */
static void elbow_broadcast_mpi_give_up(elbow_broadcast_mpi* self, MPI_Request* request) {
  MPI_Status status;
  int cancelled = 0;
  if (*request == MPI_REQUEST_NULL) return;
  MPI_Cancel(request);
  MPI_Wait(request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  if (!cancelled) ++self->received;
}

static int elbow_broadcast_mpi_cancel(void* state, uint64_t ticket) {
  elbow_broadcast_mpi* self = (elbow_broadcast_mpi*)state;
  for (int i = 0; i < self->count; ++i) {
    if (self->data[i].ticket != ticket || self->data[i].kind != ELBOW_BROADCAST_ARRIVED) continue;
    elbow_broadcast_mpi_give_up(self, &self->requests[1 + i]);
    elbow_broadcast_mpi_remove(self, i);
    return 0;
  }
  return 0;
}

/* Puts a control message behind those that wait; its bytes are copied, or still to come where they are NULL. */
static elbow_broadcast_mpi_waiting* elbow_broadcast_mpi_queue(elbow_broadcast_mpi* self, int peer, const char* bytes,
                                                              size_t size) {
  elbow_broadcast_mpi_waiting* const item = (elbow_broadcast_mpi_waiting*)malloc(sizeof *item);
  char* const memory = (char*)malloc(size + 1);
  elbow_broadcast_mpi_waiting** end = &self->waiting;
  if (item == NULL || memory == NULL) {
    free(item);
    free(memory);
    return NULL;
  }
  if (bytes != NULL) memcpy(memory, bytes, size);
  item->next = NULL;
  item->peer = peer;
  item->here = bytes != NULL;
  item->size = size;
  item->bytes = memory;
  while (*end != NULL) end = &(*end)->next;
  *end = item;
  return item;
}

static int elbow_broadcast_mpi_waits(const elbow_broadcast_mpi* self, int peer) {
  for (const elbow_broadcast_mpi_waiting* item = self->waiting; item != NULL; item = item->next) {
    if (item->peer == peer) return 1;
  }
  return 0;
}

/* The first that is here, and of which no earlier one of the same process is missing: 1, or 0 where there is none. */
static int elbow_broadcast_mpi_take_waiting(elbow_broadcast_mpi* self, elbow_broadcast_happening* happening) {
  for (elbow_broadcast_mpi_waiting** place = &self->waiting; *place != NULL; place = &(*place)->next) {
    elbow_broadcast_mpi_waiting* const item = *place;
    const elbow_broadcast_mpi_waiting* earlier = self->waiting;
    if (!item->here) continue;
    while (earlier->peer != item->peer) earlier = earlier->next;
    if (earlier != item) continue;
    *place = item->next;
    happening->kind = ELBOW_BROADCAST_CONTROL;
    happening->peer = item->peer;
    happening->bytes = self->given = item->bytes;
    happening->length = item->size;
    free(item);
    return 1;
  }
  return 0;
}

/* A long control message was announced. */
static int elbow_broadcast_mpi_receive_long(elbow_broadcast_mpi* self, int peer, const char* announcement) {
  uint64_t size;
  memcpy(&size, announcement + 1, sizeof size);
  elbow_broadcast_mpi_waiting* const item =
      size <= INT_MAX ? elbow_broadcast_mpi_queue(self, peer, NULL, (size_t)size) : NULL;
  MPI_Request* const request =
      item == NULL ? NULL
                   : elbow_broadcast_mpi_add(self, ELBOW_BROADCAST_MPI_LONG_ARRIVES, peer, 0, NULL, (size_t)size);
  if (request == NULL) return -1;
  self->data[self->count - 1].waiting = item;
  const int failed =
      MPI_Irecv(item->bytes, (int)size, MPI_BYTE, peer, ELBOW_BROADCAST_MPI_LONG, self->communicator, request);
  return failed == MPI_SUCCESS ? 0 : -1;
}

/* A control message is here: 1, or 0 where it does not happen yet. */
static int elbow_broadcast_mpi_take_control(elbow_broadcast_mpi* self, const MPI_Status* status,
                                            elbow_broadcast_happening* happening) {
  int size = 0;
  const int peer = status->MPI_SOURCE;
  MPI_Get_count(status, MPI_BYTE, &size);
  ++self->received;
  self->posted[self->next] = MPI_REQUEST_NULL;
  self->taken = 1;
  const char* const buffer = self->receive_buffers[self->next];
  if (size == ELBOW_BROADCAST_MPI_LONG_SIZE && buffer[0] == 0) {
    return elbow_broadcast_mpi_receive_long(self, peer, buffer);
  }
  if (self->waiting != NULL && elbow_broadcast_mpi_waits(self, peer)) {
    return elbow_broadcast_mpi_queue(self, peer, buffer, (size_t)size) == NULL ? -1 : 0;
  }
  happening->kind = ELBOW_BROADCAST_CONTROL;
  happening->peer = peer;
  happening->bytes = buffer;
  happening->length = (size_t)size;
  return 1;
}

/* A transfer is over: 1, or 0 where nothing happens by that. */
static int elbow_broadcast_mpi_take_data(elbow_broadcast_mpi* self, int index, elbow_broadcast_happening* happening) {
  const elbow_broadcast_mpi_data over = self->data[index];
  elbow_broadcast_mpi_remove(self, index);
  if (over.kind == ELBOW_BROADCAST_ARRIVED || over.kind == ELBOW_BROADCAST_MPI_LONG_ARRIVES) ++self->received;
  if (over.kind == ELBOW_BROADCAST_MPI_COPY) {
    free(over.owned);
    return 0;
  }
  if (over.kind == ELBOW_BROADCAST_MPI_LONG_ARRIVES) {
    over.waiting->here = 1;
    return elbow_broadcast_mpi_take_waiting(self, happening);
  }
  happening->kind = over.kind;
  happening->peer = over.peer;
  happening->ticket = over.ticket;
  happening->bytes = NULL;
  happening->length = over.size;
  return 1;
}

/* Looks at the next control message and at the transfers, at so many of them at a time that their number costs nothing: -1
 * where it fails, else the place of one that is over in `requests`, or MPI_UNDEFINED. A single call where they are few: each
 * that finds nothing makes MPI's own progress, and may yield the core. */
static int elbow_broadcast_mpi_look(elbow_broadcast_mpi* self, MPI_Status* status) {
  int index = MPI_UNDEFINED;
  int done = 0;
  self->requests[0] = self->posted[self->next];
  if (self->count <= ELBOW_BROADCAST_MPI_LOOK) {
    if (MPI_Testany(1 + self->count, self->requests, &index, &done, status) != MPI_SUCCESS) return -1;
    return done ? index : MPI_UNDEFINED;
  }
  if (MPI_Test(&self->requests[0], &done, status) != MPI_SUCCESS) return -1;
  if (done) return 0;
  const int first = self->look < self->count ? self->look : 0;
  const int rest = self->count - first;
  const int many = rest < ELBOW_BROADCAST_MPI_LOOK ? rest : ELBOW_BROADCAST_MPI_LOOK;
  if (MPI_Testany(many, self->requests + 1 + first, &index, &done, status) != MPI_SUCCESS) return -1;
  self->look = first + many;
  return done && index != MPI_UNDEFINED ? 1 + first + index : MPI_UNDEFINED;
}

static int elbow_broadcast_mpi_poll(void* state, elbow_broadcast_happening* happening) {
  elbow_broadcast_mpi* self = (elbow_broadcast_mpi*)state;
  free(self->given);
  self->given = NULL;
  if (self->waiting != NULL && elbow_broadcast_mpi_take_waiting(self, happening)) return 1;
  for (;;) {
    if (self->taken) {
      self->taken = 0;
      if (elbow_broadcast_mpi_post(self, self->next) != MPI_SUCCESS) return -1;
      self->next = (self->next + 1) % ELBOW_BROADCAST_MPI_POSTED;
    }
    MPI_Status status;
    const int index = elbow_broadcast_mpi_look(self, &status);
    if (index == MPI_UNDEFINED) return 0;
    if (index < 0) return -1;
    const int found = index == 0 ? elbow_broadcast_mpi_take_control(self, &status, happening)
                                 : elbow_broadcast_mpi_take_data(self, index - 1, happening);
    if (found != 0) return found;
  }
}

/* Receives all that was sent to this process and not received yet. */
static void elbow_broadcast_mpi_drain(elbow_broadcast_mpi* self) {
  unsigned long long expected = 0;
  MPI_Reduce_scatter_block(self->sent, &expected, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, self->communicator);
  for (int i = 0; i < ELBOW_BROADCAST_MPI_POSTED; ++i) elbow_broadcast_mpi_give_up(self, &self->posted[i]);
  for (int i = 0; i < self->count; ++i) {
    const int kind = self->data[i].kind;
    if (kind == ELBOW_BROADCAST_ARRIVED || kind == ELBOW_BROADCAST_MPI_LONG_ARRIVES)
      elbow_broadcast_mpi_give_up(self, &self->requests[1 + i]);
  }
  for (; self->received < expected; ++self->received) {
    MPI_Status status;
    int size = 0;
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, self->communicator, &status);
    MPI_Get_count(&status, MPI_BYTE, &size);
    char* const unwanted = (char*)malloc((size_t)size + 1);
    if (unwanted == NULL) MPI_Abort(self->communicator, 1);
    MPI_Recv(unwanted, size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, self->communicator, MPI_STATUS_IGNORE);
    free(unwanted);
  }
}

static void elbow_broadcast_mpi_close(void* state) {
  elbow_broadcast_mpi* self = (elbow_broadcast_mpi*)state;
  elbow_broadcast_mpi_drain(self);
  for (int i = 0; i < ELBOW_BROADCAST_MPI_SENDING; ++i) {
    MPI_Wait(&self->sending[i], MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < self->count; ++i) {
    MPI_Wait(&self->requests[1 + i], MPI_STATUS_IGNORE);
    free(self->data[i].owned);
  }
  free(self->given);
  while (self->waiting != NULL) {
    elbow_broadcast_mpi_waiting* const item = self->waiting;
    self->waiting = item->next;
    free(item->bytes);
    free(item);
  }
  free(self->data);
  free(self->requests);
  free(self->sent);
  free(self->receive_buffers);
  free(self->send_buffers);
  free(self);
}

/* Why only one thread may call MPI; NULL where others may. */
static inline const char* elbow_broadcast_mpi_confined(void) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_SERIALIZED) return NULL;
  return level == MPI_THREAD_FUNNELED
             ? "MPI was initialised with MPI_THREAD_FUNNELED and allows its main thread only; ask MPI_Init_thread for "
               "MPI_THREAD_MULTIPLE, or call elbow_broadcast_progress often in the main thread"
             : "MPI was initialised with MPI_THREAD_SINGLE and allows one thread only; ask MPI_Init_thread for "
               "MPI_THREAD_MULTIPLE, or call elbow_broadcast_progress often";
}

/* `state` is NULL where there is no memory; elbow_broadcast_new then fails with ENOMEM. */
static inline elbow_broadcast_transport elbow_broadcast_transport_of_mpi(MPI_Comm communicator) {
  elbow_broadcast_transport transport = {sizeof transport,
                                         NULL,
                                         0,
                                         1,
                                         0,
                                         elbow_broadcast_mpi_now,
                                         elbow_broadcast_mpi_send_control,
                                         elbow_broadcast_mpi_send_data,
                                         elbow_broadcast_mpi_receive_data,
                                         elbow_broadcast_mpi_cancel,
                                         elbow_broadcast_mpi_poll,
                                         elbow_broadcast_mpi_close,
                                         elbow_broadcast_mpi_confined()};
  MPI_Comm_rank(communicator, &transport.rank);
  MPI_Comm_size(communicator, &transport.ranks);
  elbow_broadcast_mpi* const self = (elbow_broadcast_mpi*)calloc(1, sizeof *self);
  if (self == NULL) return transport;
  self->sent = (unsigned long long*)calloc((size_t)transport.ranks, sizeof *self->sent);
  self->receive_buffers =
      (char(*)[ELBOW_BROADCAST_MPI_BUFFER])malloc(sizeof(char[ELBOW_BROADCAST_MPI_POSTED][ELBOW_BROADCAST_MPI_BUFFER]));
  self->send_buffers = (char(*)[ELBOW_BROADCAST_MPI_BUFFER])malloc(
      sizeof(char[ELBOW_BROADCAST_MPI_SENDING][ELBOW_BROADCAST_MPI_BUFFER]));
  if (self->sent == NULL || self->receive_buffers == NULL || self->send_buffers == NULL ||
      elbow_broadcast_mpi_grow(self) != 0) {
    free(self->sent);
    free(self->data);
    free(self->receive_buffers);
    free(self->send_buffers);
    free(self);
    return transport;
  }
  int found = 0;
  int* most = NULL;
  MPI_Comm_get_attr(communicator, MPI_TAG_UB, &most, &found);
  transport.channels = (uint32_t)((found ? *most : 32767) - ELBOW_BROADCAST_MPI_DATA);
  if (transport.channels > 65536) transport.channels = 65536;
  self->communicator = communicator;
  for (int i = 0; i < ELBOW_BROADCAST_MPI_SENDING; ++i) {
    self->sending[i] = MPI_REQUEST_NULL;
  }
  for (int i = 0; i < ELBOW_BROADCAST_MPI_POSTED; ++i) elbow_broadcast_mpi_post(self, i);
  transport.state = self;
  return transport;
}

/* NOLINTEND(modernize-use-nullptr) */

#endif
