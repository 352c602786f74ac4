/* elbow_transport of an MPI communicator, for elbowroom/broadcast.h. A header only: it is compiled with the program's own
 * MPI.
 *
 *     MPI_Comm own;
 *     MPI_Comm_dup(MPI_COMM_WORLD, &own);                 messages of broadcasts meet no others
 *     elbow_transport transport = elbow_transport_of_mpi(own);
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
  ELBOW_MPI_CONTROL = 0, /* tags */
  ELBOW_MPI_LONG = 1,    /* control messages that exceed a buffer, after one of ELBOW_MPI_LONG_SIZE bytes */
  ELBOW_MPI_DATA = 2,    /* and on: channels */
  ELBOW_MPI_LONG_SIZE = 9,
  ELBOW_MPI_BUFFER = 8192,
  ELBOW_MPI_POSTED = 16, /* receives of control messages */
  ELBOW_MPI_SENDING = 64 /* control messages on their way whose memory need not be allocated */
};

/* What a request is for, besides ELBOW_SENT and ELBOW_ARRIVED: control messages in memory of their own. */
enum { ELBOW_MPI_COPY = -1, ELBOW_MPI_LONG_ARRIVES = -2 };

typedef struct elbow_mpi_data {
  uint64_t ticket;
  int kind;
  int peer;
  char* owned; /* memory of a control message */
  size_t size;
} elbow_mpi_data;

typedef struct elbow_mpi {
  MPI_Comm communicator;
  int next;           /* of the posted receives */
  int taken;          /* its bytes are being read; it is posted again at the next poll */
  char* long_message; /* the last one, until the next poll */
  MPI_Request posted[ELBOW_MPI_POSTED];
  int next_sending;
  MPI_Request sending[ELBOW_MPI_SENDING];
  MPI_Request* requests; /* first the next control message's, then those of `data`: one call looks at all */
  elbow_mpi_data* data;
  int count;
  int room;
  unsigned long long* sent; /* messages of all kinds, by receiver */
  unsigned long long received;
  char (*receive_buffers)[ELBOW_MPI_BUFFER];
  char (*send_buffers)[ELBOW_MPI_BUFFER];
} elbow_mpi;

static double elbow_mpi_now(void* state) {
  (void)state;
  return MPI_Wtime();
}

static int elbow_mpi_post(elbow_mpi* self, int index) {
  return MPI_Irecv(self->receive_buffers[index], ELBOW_MPI_BUFFER, MPI_BYTE, MPI_ANY_SOURCE, ELBOW_MPI_CONTROL,
                   self->communicator, &self->posted[index]);
}

/* Room for one more; its request is then to be set. */
static int elbow_mpi_grow(elbow_mpi* self) {
  if (self->count < self->room) return 0;
  const int room = self->room == 0 ? 64 : 2 * self->room;
  elbow_mpi_data* const data = (elbow_mpi_data*)realloc(self->data, (size_t)room * sizeof *data);
  if (data == NULL) return -1;
  self->data = data;
  MPI_Request* const requests = (MPI_Request*)realloc(self->requests, ((size_t)room + 1) * sizeof(MPI_Request));
  if (requests == NULL) return -1;
  self->requests = requests;
  self->room = room;
  return 0;
}

/* Notes what the request behind the last one is for, and returns where it is to be put. */
static MPI_Request* elbow_mpi_add(elbow_mpi* self, int kind, int peer, uint64_t ticket, char* owned, size_t size) {
  if (elbow_mpi_grow(self) != 0) return NULL;
  const elbow_mpi_data item = {ticket, kind, peer, owned, size};
  self->data[self->count] = item;
  return &self->requests[++self->count];
}

static int elbow_mpi_isend(elbow_mpi* self, int peer, int tag, const void* bytes, size_t size, MPI_Request* request) {
  ++self->sent[peer];
  return MPI_Isend(bytes, (int)size, MPI_BYTE, peer, tag, self->communicator, request) == MPI_SUCCESS ? 0 : -1;
}

/* Sends a copy that is freed when it is sent. */
static int elbow_mpi_send_copy(elbow_mpi* self, int peer, int tag, const void* bytes, size_t size) {
  char* const copy = size <= INT_MAX ? (char*)malloc(size) : NULL;
  MPI_Request* const request = copy == NULL ? NULL : elbow_mpi_add(self, ELBOW_MPI_COPY, peer, 0, copy, size);
  if (request == NULL) {
    free(copy);
    return -1;
  }
  memcpy(copy, bytes, size);
  return elbow_mpi_isend(self, peer, tag, copy, size, request);
}

/* Never waits: two processes that waited for each other's receives would wait for ever. */
static int elbow_mpi_send_control(void* state, int peer, const void* bytes, size_t size) {
  elbow_mpi* self = (elbow_mpi*)state;
  char announcement[ELBOW_MPI_LONG_SIZE] = {0};
  if (size > ELBOW_MPI_BUFFER) {
    const uint64_t announced = size;
    if (elbow_mpi_send_copy(self, peer, ELBOW_MPI_LONG, bytes, size) != 0) return -1;
    memcpy(announcement + 1, &announced, sizeof announced);
    bytes = announcement;
    size = sizeof announcement;
  }
  const int index = self->next_sending;
  int done = 0;
  MPI_Test(&self->sending[index], &done, MPI_STATUS_IGNORE);
  if (!done) return elbow_mpi_send_copy(self, peer, ELBOW_MPI_CONTROL, bytes, size);
  self->next_sending = (index + 1) % ELBOW_MPI_SENDING;
  memcpy(self->send_buffers[index], bytes, size);
  return elbow_mpi_isend(self, peer, ELBOW_MPI_CONTROL, self->send_buffers[index], size, &self->sending[index]);
}

static int elbow_mpi_send_data(void* state, int peer, uint32_t channel, const void* data, size_t size,
                               uint64_t ticket) {
  elbow_mpi* self = (elbow_mpi*)state;
  MPI_Request* const request = elbow_mpi_add(self, ELBOW_SENT, peer, ticket, NULL, size);
  if (request == NULL) return -1;
  return elbow_mpi_isend(self, peer, ELBOW_MPI_DATA + (int)channel, data, size, request);
}

static int elbow_mpi_receive_data(void* state, int peer, uint32_t channel, void* data, size_t size, uint64_t ticket) {
  elbow_mpi* self = (elbow_mpi*)state;
  MPI_Request* const request = elbow_mpi_add(self, ELBOW_ARRIVED, peer, ticket, NULL, size);
  if (request == NULL) return -1;
  const int tag = ELBOW_MPI_DATA + (int)channel;
  return MPI_Irecv(data, (int)size, MPI_BYTE, peer, tag, self->communicator, request) == MPI_SUCCESS ? 0 : -1;
}

static void elbow_mpi_remove(elbow_mpi* self, int index) {
  self->requests[1 + index] = self->requests[self->count];
  self->data[index] = self->data[--self->count];
}

/* Gives a receive up, unless its message is here already. */
static void elbow_mpi_give_up(elbow_mpi* self, MPI_Request* request) {
  MPI_Status status;
  int cancelled = 0;
  if (*request == MPI_REQUEST_NULL) return;
  MPI_Cancel(request);
  MPI_Wait(request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  if (!cancelled) ++self->received;
}

static int elbow_mpi_cancel(void* state, uint64_t ticket) {
  elbow_mpi* self = (elbow_mpi*)state;
  for (int i = 0; i < self->count; ++i) {
    if (self->data[i].ticket != ticket || self->data[i].kind != ELBOW_ARRIVED) continue;
    elbow_mpi_give_up(self, &self->requests[1 + i]);
    elbow_mpi_remove(self, i);
    return 0;
  }
  return 0;
}

/* A long control message was announced: it happens when it is here. */
static int elbow_mpi_receive_long(elbow_mpi* self, int peer, const char* announcement) {
  uint64_t size;
  memcpy(&size, announcement + 1, sizeof size);
  char* const owned = size <= INT_MAX ? (char*)malloc((size_t)size) : NULL;
  MPI_Request* const request =
      owned == NULL ? NULL : elbow_mpi_add(self, ELBOW_MPI_LONG_ARRIVES, peer, 0, owned, (size_t)size);
  if (request == NULL) {
    free(owned);
    return -1;
  }
  const int failed = MPI_Irecv(owned, (int)size, MPI_BYTE, peer, ELBOW_MPI_LONG, self->communicator, request);
  return failed == MPI_SUCCESS ? 0 : -1;
}

/* A control message is here: 1, or 0 where it announces a long one. */
static int elbow_mpi_take_control(elbow_mpi* self, const MPI_Status* status, elbow_happening* happening) {
  int size = 0;
  MPI_Get_count(status, MPI_BYTE, &size);
  ++self->received;
  self->posted[self->next] = MPI_REQUEST_NULL;
  self->taken = 1;
  const char* const buffer = self->receive_buffers[self->next];
  if (size == ELBOW_MPI_LONG_SIZE && buffer[0] == 0) {
    return elbow_mpi_receive_long(self, status->MPI_SOURCE, buffer);
  }
  happening->kind = ELBOW_CONTROL;
  happening->peer = status->MPI_SOURCE;
  happening->bytes = buffer;
  happening->size = (size_t)size;
  return 1;
}

/* A transfer is over: 1, or 0 where nobody asked for it. */
static int elbow_mpi_take_data(elbow_mpi* self, int index, elbow_happening* happening) {
  const elbow_mpi_data over = self->data[index];
  elbow_mpi_remove(self, index);
  if (over.kind == ELBOW_ARRIVED || over.kind == ELBOW_MPI_LONG_ARRIVES) ++self->received;
  if (over.kind == ELBOW_MPI_COPY) {
    free(over.owned);
    return 0;
  }
  happening->kind = over.kind == ELBOW_MPI_LONG_ARRIVES ? ELBOW_CONTROL : over.kind;
  happening->peer = over.peer;
  happening->ticket = over.ticket;
  happening->bytes = self->long_message = over.owned;
  happening->size = over.size;
  return 1;
}

/* One call of MPI looks at everything: each call that finds nothing makes MPI's own progress, and may yield the core. */
static int elbow_mpi_poll(void* state, elbow_happening* happening) {
  elbow_mpi* self = (elbow_mpi*)state;
  free(self->long_message);
  self->long_message = NULL;
  for (;;) {
    if (self->taken) {
      self->taken = 0;
      if (elbow_mpi_post(self, self->next) != MPI_SUCCESS) return -1;
      self->next = (self->next + 1) % ELBOW_MPI_POSTED;
    }
    int index = MPI_UNDEFINED;
    int done = 0;
    MPI_Status status;
    self->requests[0] = self->posted[self->next];
    if (MPI_Testany(1 + self->count, self->requests, &index, &done, &status) != MPI_SUCCESS) return -1;
    if (!done || index == MPI_UNDEFINED) return 0;
    const int found =
        index == 0 ? elbow_mpi_take_control(self, &status, happening) : elbow_mpi_take_data(self, index - 1, happening);
    if (found != 0) return found;
  }
}

/* Receives all that was sent to this process and not received yet. */
static void elbow_mpi_drain(elbow_mpi* self) {
  unsigned long long expected = 0;
  MPI_Reduce_scatter_block(self->sent, &expected, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, self->communicator);
  for (int i = 0; i < ELBOW_MPI_POSTED; ++i) elbow_mpi_give_up(self, &self->posted[i]);
  for (int i = 0; i < self->count; ++i) {
    const int kind = self->data[i].kind;
    if (kind == ELBOW_ARRIVED || kind == ELBOW_MPI_LONG_ARRIVES) elbow_mpi_give_up(self, &self->requests[1 + i]);
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

static void elbow_mpi_close(void* state) {
  elbow_mpi* self = (elbow_mpi*)state;
  elbow_mpi_drain(self);
  for (int i = 0; i < ELBOW_MPI_SENDING; ++i) {
    MPI_Wait(&self->sending[i], MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < self->count; ++i) {
    MPI_Wait(&self->requests[1 + i], MPI_STATUS_IGNORE);
    free(self->data[i].owned);
  }
  free(self->long_message);
  free(self->data);
  free(self->requests);
  free(self->sent);
  free(self->receive_buffers);
  free(self->send_buffers);
  free(self);
}

/* Why only one thread may call MPI; NULL where others may. */
static inline const char* elbow_mpi_confined(void) {
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
static inline elbow_transport elbow_transport_of_mpi(MPI_Comm communicator) {
  elbow_transport transport = {NULL,
                               0,
                               1,
                               0,
                               elbow_mpi_now,
                               elbow_mpi_send_control,
                               elbow_mpi_send_data,
                               elbow_mpi_receive_data,
                               elbow_mpi_cancel,
                               elbow_mpi_poll,
                               elbow_mpi_close,
                               elbow_mpi_confined()};
  MPI_Comm_rank(communicator, &transport.rank);
  MPI_Comm_size(communicator, &transport.size);
  elbow_mpi* const self = (elbow_mpi*)calloc(1, sizeof *self);
  if (self == NULL) return transport;
  self->sent = (unsigned long long*)calloc((size_t)transport.size, sizeof *self->sent);
  self->receive_buffers = (char(*)[ELBOW_MPI_BUFFER])malloc(sizeof(char[ELBOW_MPI_POSTED][ELBOW_MPI_BUFFER]));
  self->send_buffers = (char(*)[ELBOW_MPI_BUFFER])malloc(sizeof(char[ELBOW_MPI_SENDING][ELBOW_MPI_BUFFER]));
  if (self->sent == NULL || self->receive_buffers == NULL || self->send_buffers == NULL || elbow_mpi_grow(self) != 0) {
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
  transport.channels = (uint32_t)((found ? *most : 32767) - ELBOW_MPI_DATA);
  if (transport.channels > 65536) transport.channels = 65536;
  self->communicator = communicator;
  for (int i = 0; i < ELBOW_MPI_SENDING; ++i) {
    self->sending[i] = MPI_REQUEST_NULL;
  }
  for (int i = 0; i < ELBOW_MPI_POSTED; ++i) elbow_mpi_post(self, i);
  transport.state = self;
  return transport;
}

/* NOLINTEND(modernize-use-nullptr) */

#endif
