! The three ways that Fortran calls MPI, on two processes: each sends one message, in a ring, waits without a status, and
! reduces in place. Ends with an error where a result is wrong.
program trace_mpi
  implicit none
  call old
  call module_mpi
  call module_f08
  print '(a)', 'right'
end program

subroutine check(holds, what)
  implicit none
  logical, intent(in) :: holds
  character(len=*), intent(in) :: what
  if (.not. holds) then
    print '(2a)', 'wrong: ', what
    error stop 1
  end if
end subroutine

subroutine old
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, error, status(MPI_STATUS_SIZE), requests(2), length
  integer :: message(4), sums(3), whole
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Get_processor_name(name, length, error)
  call check(length > 0 .and. length < MPI_MAX_PROCESSOR_NAME, 'name')
  message = rank
  if (rank == 0) then
    call MPI_Send(message, 4, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, error)
    call MPI_Recv(message, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, error)
    call check(status(MPI_SOURCE) == 1 .and. status(MPI_TAG) == 2, 'status')
  else
    call MPI_Recv(message, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call check(all(message == 0), 'received')
    call MPI_Send(message, 3, MPI_INTEGER, 0, 2, MPI_COMM_WORLD, error)
  end if
  call MPI_Irecv(message, 4, MPI_INTEGER, 1 - rank, 3, MPI_COMM_WORLD, requests(1), error)
  call MPI_Isend([5, 6], 2, MPI_INTEGER, 1 - rank, 3, MPI_COMM_WORLD, requests(2), error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call check(requests(1) == MPI_REQUEST_NULL .and. message(2) == 6, 'waited for')
  sums = [1, 2, rank]
  call MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call check(all(sums == [2, 4, 1]), 'sums in place')
  whole = 7
  if (rank == 0) then
    call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sums, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check(sums(2) == 7, 'gathered in place')
  else
    call MPI_Gather(whole, 1, MPI_INTEGER, sums, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD, error)
  end if
end subroutine

subroutine module_mpi
  use mpi
  implicit none
  integer :: rank, error, index, requests(2), other
  integer :: message(2)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_dup(MPI_COMM_WORLD, other, error)
  call MPI_Comm_set_name(other, 'another', error)
  requests = MPI_REQUEST_NULL
  call MPI_Irecv(message, 2, MPI_INTEGER, MPI_ANY_SOURCE, 4, other, requests(2), error)
  call MPI_Send([rank, 8], 2, MPI_INTEGER, 1 - rank, 4, other, error)
  call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, error)
  call check(index == 2 .and. message(1) == 1 - rank, 'waited for any')
  call MPI_Comm_free(other, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
end subroutine

subroutine module_f08
  use mpi_f08
  implicit none
  integer :: rank
  integer, asynchronous :: message(2)
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  logical :: flag
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) then
    call MPI_Send([9, 9], 2, MPI_INTEGER, 1, 5, MPI_COMM_WORLD)
    call MPI_Isend([9, 8], 2, MPI_INTEGER, 1, 6, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  else
    call MPI_Recv(message, 2, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(message == 9), 'received by mpi_f08')
    call MPI_Irecv(message, 2, MPI_INTEGER, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(message(2) == 8, 'waited for by mpi_f08')
    call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, flag, status)
    call check(.not. flag, 'nothing comes any more')
  end if
  call MPI_Allreduce(MPI_IN_PLACE, message, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  call MPI_Finalize()
end subroutine
