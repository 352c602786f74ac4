/* A program of Fortran with mpi_f08 and large counts, as a compiler without TS 29113 would call MPI, and (with STUB) the
 * binding that it calls: Debian's MPICH has none of that kind. */
#include <mpi.h>
#include <stddef.h>

#ifdef STUB
void mpi_send_f08_large_(void* buffer, MPI_Count* count, MPI_Fint* type, int* to, int* tag, MPI_Fint* group,
                         int* error) {
  *error = PMPI_Send_c(buffer, *count, MPI_Type_f2c(*type), *to, *tag, MPI_Comm_f2c(*group));
}
#else
void mpi_send_f08_large_(void*, MPI_Count*, MPI_Fint*, int*, int*, MPI_Fint*, int*);

int main(void) {
  char buffer[1];
  MPI_Count count = (1LL << 32) + 8;
  int nobody = MPI_PROC_NULL, tag = 1, error = -1;
  MPI_Init(NULL, NULL);
  MPI_Fint type = MPI_Type_c2f(MPI_DOUBLE), world = MPI_Comm_c2f(MPI_COMM_WORLD);
  mpi_send_f08_large_(buffer, &count, &type, &nobody, &tag, &world, &error);
  MPI_Finalize();
  return error == MPI_SUCCESS ? 0 : 1;
}
#endif
