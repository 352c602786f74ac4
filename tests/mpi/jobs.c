/* A program that is traced as one of several jobs, and ends in many ways: jobs MESSAGES [MODE [COMMAND...]]. Rank 0 sends rank 1
 * that many messages of 8 bytes. MODE: finalize (default); exit, abort, crash (rank 0, without finalizing); _exit and exec (after
 * MPI_Finalize); fork (a child that uses no MPI); run (rank 0 runs COMMAND after its messages); spawn (two more processes, which
 * send as many messages to each other). */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size, messages;

static void talk(void) {
  double x = 0;
  for (int i = 0; i < messages && size > 1; ++i) {
    if (rank == 0) MPI_Send(&x, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&x, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void spawn(char* program, char* count) {
  char* words[] = {count, "child", NULL};
  MPI_Comm children;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Comm_spawn(program, words, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  MPI_Info_free(&info);
  MPI_Comm_disconnect(&children);
}

static void fork_child(void) {
  const pid_t child = fork();
  if (child == 0) exit(7);
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) != 7) abort();
}

int main(int argc, char** argv) {
  const char* mode = argc > 2 ? argv[2] : "finalize";
  messages = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  talk();
  if (strcmp(mode, "run") == 0 && rank == 0 && system(argv[3]) != 0) abort();
  if (strcmp(mode, "fork") == 0) fork_child();
  if (strcmp(mode, "spawn") == 0) spawn(argv[0], argv[1]);
  if (strcmp(mode, "child") == 0) {
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    MPI_Comm_disconnect(&parent);
  }
  if (rank == 0 && strcmp(mode, "child") != 0) {
    printf("%d ranks, %d messages\n", size, messages);
    fflush(stdout);
    if (argc > 2) usleep(300000); /* a launcher may not read what is written just before its job fails */
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(mode, "abort") == 0 && rank == 0) MPI_Abort(MPI_COMM_WORLD, 5);
  if (strcmp(mode, "crash") == 0 && rank == 0) raise(SIGSEGV);
  if (strcmp(mode, "exit") == 0) exit(6);
  MPI_Finalize();
  if (strstr("_exit exec", mode) != NULL) usleep(300000); /* the launcher ends the others with the first that fails */
  if (strcmp(mode, "_exit") == 0) _exit(3);
  if (strcmp(mode, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL);
  return 0;
}
