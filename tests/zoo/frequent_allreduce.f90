! Allreduces of 8 B, hundreds in a step, each after a slice of the computation. Repaired: one with all values.
program frequent_allreduce
  use zoo
  integer, parameter :: most = 20000
  real(real64) :: values(most), sums(most), from, took, slowest
  integer :: step, i, k, count
  call zoo_begin()
  values = 1
  took = 1
  do i = 1, 4
    ! Past a profiler, which sees the steps; MPICH's are seen, so there are few.
    call PMPI_Barrier(MPI_COMM_WORLD, ierr)
    from = MPI_Wtime()
    do k = 1, 8
      call PMPI_Allreduce(values(k), sums(k), 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    end do
    if (i > 1) took = min(took, (MPI_Wtime() - from) / 8)
  end do
  call MPI_Allreduce(took, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
  count = min(most, max(2, int(size_ * step_s / slowest)))
  expected = -1
  call first_step()
  do step = 1, steps
    if (repaired) then
      call work(step_s * (1 - size_))
      call MPI_Allreduce(values(1), sums(1), count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    else
      call reduce_one_by_one(count, step_s * (1 - size_))
    end if
  end do
  call zoo_end()
contains
  subroutine reduce_one_by_one(number, seconds)
    integer, intent(in) :: number
    real(real64), intent(in) :: seconds
    integer :: k
    do k = 1, number
      call work(seconds / number)
      call MPI_Allreduce(values(k), sums(k), 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    end do
  end subroutine
end program
