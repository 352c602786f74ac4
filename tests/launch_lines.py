"""Launchers and a machine for tests of launch lines."""

from __future__ import annotations

from elbowroom.launch.mpi import Kind, Mpi
from elbowroom.machine.topology import Core, Machine, NumaNode


def mpi(kind: Kind, version: str) -> Mpi:
    """An MPI that nobody starts."""
    return Mpi(kind=kind, version=version, prefix="/opt", compiler="/opt/bin/mpicxx", launcher="mpirun")


OPENMPI, OPENMPI5, MPICH = mpi("openmpi", "4.1.4"), mpi("openmpi", "5.0.11"), mpi("mpich", "4.0.2")


def machine(cores: int = 4) -> Machine:
    """Two sockets of half the cores each."""
    half = cores // 2
    return Machine(
        name="m",
        model="",
        cores=tuple(
            Core(number=one, logical=one, package=one // half, node=one // half, pus=(one,))
            for one in range(cores)
        ),
        nodes=(
            NumaNode(number=0, package=0, memory=1, cores=tuple(range(half))),
            NumaNode(number=1, package=1, memory=1, cores=tuple(range(half, cores))),
        ),
        caches=(),
        nics=(),
        allowed=tuple(range(cores)),
        memory=2,
    )
