! A halo with both neighbours, nonblocking; the last rank computes longer. Repaired: all compute the same.
program halo_late
  use zoo
  real(real64) :: out(512), in(512, 2), less
  integer :: requests(4), step
  call zoo_begin()
  less = size_ * step_s
  out = rank
  call first_step()
  do step = 1, steps
    if (repaired) then
      call work(step_s - less * (ranks - 1) / ranks)
    else if (rank == ranks - 1) then
      call work(step_s)
    else
      call work(step_s - less)
      expected = expected + less
    end if
    call MPI_Irecv(in(:, 1), 512, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Irecv(in(:, 2), 512, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Isend(out, 512, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Isend(out, 512, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(4), ierr)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  call zoo_end()
end program
