/* Opens its MPI, as Julia and plug-ins do: trials_opened LIBRARY [own | spawn]. Prints what it called as trials.c does. `own`:
 * looks MPI's functions up by the C library's dlsym, past any other one. `spawn` (Open MPI): also starts itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void* Find(void*, const char*);

int main(int argc, char** argv) {
  void* mpi = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (mpi == NULL) return 7;
  Find* find = dlsym;
  const int own = argc > 2 && strcmp(argv[2], "own") == 0, spawns = argc > 2 && strcmp(argv[2], "spawn") == 0;
  if (own && (find = (Find*)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34")) == NULL) return 8;
  int (*init)(int*, char***) = (int (*)(int*, char***))find(mpi, "MPI_Init");
  int (*finalize)(void) = (int (*)(void))find(mpi, "MPI_Finalize");
  int rank;
  init(&argc, &argv);
  if (find(mpi, "ompi_mpi_comm_world") != NULL) { /* Open MPI's handles are addresses, MPICH's numbers */
    void *world = find(mpi, "ompi_mpi_comm_world"), *byte = find(mpi, "ompi_mpi_byte");
    ((int (*)(void*, int*))find(mpi, "MPI_Comm_rank"))(world, &rank);
    int (*exchange)(void*, int, void*, int, int, int, int, void*, void*) =
        (int (*)(void*, int, void*, int, int, int, int, void*, void*))find(mpi, "MPI_Sendrecv_replace");
    char bytes[400];
    for (int i = 0; i < 3; ++i) exchange(bytes, sizeof bytes, byte, 1 - rank, 1, 1 - rank, 1, world, NULL);
    int (*spawn)(const char*, char**, int, void*, int, void*, void**, int*) =
        (int (*)(const char*, char**, int, void*, int, void*, void**, int*))find(mpi, "MPI_Comm_spawn");
    char* words[] = {argv[1], "spawned", NULL};
    void* others;
    if (spawns && spawn(argv[0], words, 2, find(mpi, "ompi_mpi_info_null"), 0, world, &others, NULL) != 0) return 6;
    if (argc > 2 && !own) {
      if (!spawns) ((int (*)(void**))find(mpi, "MPI_Comm_get_parent"))(&others);
      ((int (*)(void**))find(mpi, "MPI_Comm_disconnect"))(&others);
    }
  } else {
    const int world = 0x44000000, byte = 0x4c00010d;
    ((int (*)(int, int*))find(mpi, "MPI_Comm_rank"))(world, &rank);
    int (*exchange)(void*, int, int, int, int, int, int, int, void*) =
        (int (*)(void*, int, int, int, int, int, int, int, void*))find(mpi, "MPI_Sendrecv_replace");
    char bytes[400];
    for (int i = 0; i < 3; ++i) exchange(bytes, sizeof bytes, byte, 1 - rank, 1, 1 - rank, 1, world, (void*)1);
  }
  if (argc < 3 || own || spawns) printf("rank %d MPI_Sendrecv_replace 3 1200\nrank %d sent 1200\n", rank, rank);
  fflush(stdout);
  finalize();
  return 3;
}
