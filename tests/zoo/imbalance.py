"""A reduction of a buffer; the higher the rank, the longer it computes. Repaired: all compute the same."""

import numpy as np
from mpi4py import MPI

from zoo import Zoo

zoo = Zoo()
values, sums = np.ones(100), np.zeros(100)
zoo.first_step()
for _ in range(zoo.steps):
    less = zoo.size * zoo.step * (zoo.ranks - 1 - zoo.rank) / (zoo.ranks - 1)
    zoo.work(zoo.step - (zoo.size * zoo.step / 2 if zoo.repaired else less))
    zoo.expected += 0 if zoo.repaired else less
    zoo.comm.Allreduce(values, sums, MPI.SUM)
zoo.end()
