! A plug-in: the program that opens it knows no MPI, and nobody else sees the MPI that it brings.
subroutine run()
  use mpi
  implicit none
  integer :: rank, ranks, code, request, i, received, position
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  do i = 1, 5
    call MPI_Irecv(received, 1, MPI_INTEGER, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, request, code)
    call MPI_Send(i, 1, MPI_INTEGER, mod(rank + 1, ranks), 4, MPI_COMM_WORLD, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    if (received /= i) call abort
    position = i
    call MPI_Allreduce(MPI_IN_PLACE, position, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    if (position /= i * ranks) call abort
  end do
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 0) print '(a)', 'the plug-in is done'
  call MPI_Finalize(code)
end subroutine run
