! Rank 0 prepares a task for each worker, one after the other; workers wait for theirs. Repaired: no master, every rank
! does the same share of both.
program master_worker
  use zoo
  real(real64) :: task(128), result(128), prepares, computes
  integer :: step, worker
  call zoo_begin()
  task = 1
  result = 1
  ! A worker computes for 1 - size of a step; the master's turn takes what is left, or the whole step for all.
  computes = (1 - size_) * step_s
  prepares = min(size_ * step_s, step_s / (ranks - 1))
  call first_step()
  do step = 1, steps
    if (repaired) then
      call work((prepares + computes) * (ranks - 1) / ranks)
    else if (rank > 0) then
      call work(computes)
    end if
    if (rank > 0) then
      call MPI_Send(result, 128, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, ierr)
      call MPI_Recv(task, 128, MPI_DOUBLE_PRECISION, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    else
      do worker = 1, ranks - 1
        call MPI_Recv(result, 128, MPI_DOUBLE_PRECISION, worker, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        if (.not. repaired) call work(prepares)
        call MPI_Send(task, 128, MPI_DOUBLE_PRECISION, worker, 2, MPI_COMM_WORLD, ierr)
      end do
    end if
  end do
  ! The master waits for the first worker where its own turns are shorter than a step.
  if (rank == 0) expected = MPI_Wtime() - begin - steps * (ranks - 1) * prepares
  if (rank > 0) expected = MPI_Wtime() - begin - steps * computes
  if (repaired) expected = 0
  call zoo_end()
end program
