! What the Fortran programs of the zoo share: as zoo.h.
module zoo
  use mpi
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer :: rank, ranks, left, right, steps, ierr
  logical :: repaired
  real(real64) :: step_s, size_, expected = 0, begin, rate = 0
  real(real64), volatile :: sink = 1
contains
  subroutine iterate(count)
    real(real64), intent(in) :: count
    integer(int64) :: i
    real(real64) :: x
    x = sink
    do i = 1, int(count, int64)
      x = x * 0.999999_real64 + 1e-6_real64
    end do
    sink = x
  end subroutine

  subroutine work(seconds)
    real(real64), intent(in) :: seconds
    if (seconds > 0) call iterate(seconds * rate)
  end subroutine

  real(real64) function option(name, value)
    character(*), intent(in) :: name
    real(real64), intent(in) :: value
    character(64) :: word
    integer :: i, equals
    option = value
    do i = 1, command_argument_count()
      call get_command_argument(i, word)
      equals = index(word, "=")
      if (equals == 0) cycle
      if (word(:equals - 1) == name) read (word(equals + 1:), *) option
    end do
  end function

  subroutine zoo_begin()
    real(real64) :: from, to, best
    integer :: i
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    left = modulo(rank - 1, ranks)
    right = modulo(rank + 1, ranks)
    steps = int(option("steps", 150.0_real64))
    step_s = 1e-3_real64 * option("step_ms", 8.0_real64)
    size_ = option("size", 0.3_real64)
    repaired = option("repaired", 0.0_real64) > 0
    best = 0
    do i = 1, 12
      call cpu_time(from)
      call iterate(500000.0_real64)
      call cpu_time(to)
      if (to > from) best = max(best, 500000 / (to - from))
    end do
    call MPI_Allreduce(best, rate, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
  end subroutine

  subroutine first_step()
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    begin = MPI_Wtime()
  end subroutine

  subroutine zoo_end()
    real(real64) :: seconds, all
    seconds = MPI_Wtime() - begin
    call MPI_Reduce(expected, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    if (rank == 0) then
      all = merge(-1.0_real64, all / ranks / seconds, all < 0)
      print '(a, i0, a, es12.5, a, es11.4, a)', '{"steps": ', steps, ', "step_s": ', seconds / steps, &
        ', "expected": ', all, '}'
    end if
    call MPI_Finalize(ierr)
  end subroutine
end module
