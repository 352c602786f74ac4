"""What the mpi4py programs of the zoo share: as zoo.h."""

from __future__ import annotations

import sys
import time
from typing import Any

from mpi4py import MPI


class Zoo:
    """Options NAME=VALUE, computation of a known time, and the line that rank 0 prints."""

    def __init__(self) -> None:
        given = dict(word.split("=", 1) for word in sys.argv[1:])
        self.comm: Any = MPI.COMM_WORLD
        self.rank, self.ranks = self.comm.rank, self.comm.size
        self.left, self.right = (self.rank - 1) % self.ranks, (self.rank + 1) % self.ranks
        self.steps = int(given.get("steps", 150))
        self.step = 1e-3 * float(given.get("step_ms", 8))
        self.size = float(given.get("size", 0.3))
        self.repaired = bool(int(given.get("repaired", 0)))
        self.expected = 0.0
        self.begin = 0.0

    def work(self, seconds: float) -> None:
        """By CPU time: interpreters of a job differ in speed, and what they are given must not."""
        until, x = time.thread_time() + seconds, 1.0
        while time.thread_time() < until:
            for _ in range(100):
                x = x * 0.999999 + 1e-6

    def first_step(self) -> None:
        self.comm.Barrier()
        self.begin = time.perf_counter()

    def end(self) -> None:
        seconds = time.perf_counter() - self.begin
        total = self.comm.reduce(self.expected)
        if self.rank == 0:
            share = -1 if total < 0 else total / self.ranks / seconds
            print(f'{{"steps": {self.steps}, "step_s": {seconds / self.steps:.6g}, "expected": {share:.4g}}}')
