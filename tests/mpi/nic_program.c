/* What a process behind the emulated NIC may do besides sending (tests/mpi/test_nic_programs.py):
 *
 *   opens LIBRARY FUNCTION   opens a library with RTLD_LOCAL and calls its function, whose result is the exit code
 *   forks                    a child leaves by exit(); then prints, and waits for the end of its input
 *   listens                  prints a port, and receives from one sender
 *   sends PORT BYTES         a child of vfork closes all descriptors; then sends to that port, by a socket that does not
 *                            block and is watched by epoll for edges: refused sends, which epoll would not tell of, fail
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int passed, const char* what) {
  if (!passed) {
    perror(what);
    exit(1);
  }
}

static int open_and_call(const char* library, const char* function) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == NULL) fprintf(stderr, "%s\n", dlerror());
  int (*call)(void) = opened == NULL ? NULL : (int (*)(void))dlsym(opened, function);
  return call == NULL ? 3 : call();
}

static int fork_once(void) {
  const pid_t child = fork();
  if (child == 0) exit(0);
  check(waitpid(child, NULL, 0) == child, "waitpid");
  puts("forked");
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static int receive(void) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  check(bind(listening, (struct sockaddr*)&address, length) == 0, "bind");
  check(listen(listening, 1) == 0, "listen");
  check(getsockname(listening, (struct sockaddr*)&address, &length) == 0, "getsockname");
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  const int sender = accept(listening, NULL, NULL);
  char block[4096];
  while (recv(sender, block, sizeof block, 0) > 0) {
  }
  return 0;
}

static void close_all_in_child(void) {
  const pid_t child = vfork();
  if (child == 0) {
    for (int file = 3; file < 64; ++file) close(file);
    _exit(0);
  }
  check(waitpid(child, NULL, 0) == child, "waitpid");
}

static int send_to(int port, size_t bytes) {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  const struct sockaddr_in address = loopback(port);
  check(connect(file, (const struct sockaddr*)&address, sizeof address) == 0, "connect");
  check(fcntl(file, F_SETFL, O_NONBLOCK) == 0, "fcntl");
  struct epoll_event edges = {.events = EPOLLOUT | EPOLLET};
  check(epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, file, &edges) == 0, "epoll_ctl");
  close_all_in_child();
  char* const data = calloc(bytes, 1);
  for (size_t sent = 0; sent < bytes;) {
    const ssize_t taken = send(file, data + sent, bytes - sent, 0);
    check(taken > 0, "send");
    sent += (size_t)taken;
  }
  free(data);
  return close(file);
}

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (strcmp(what, "opens") == 0) return open_and_call(words[2], words[3]);
  if (strcmp(what, "forks") == 0) return fork_once();
  if (strcmp(what, "listens") == 0) return receive();
  return send_to(atoi(words[2]), (size_t)atol(words[3]));
}
