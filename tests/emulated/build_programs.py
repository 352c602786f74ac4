"""Builds the native programs that plans and recorders need, inside the root of the emulated machines' disk.

On an emulated processor this would take hours. Debian's MPI is that of StarPU, so all programs are built for
it; for the embedded one the probe and the recorder's libraries.
"""

from __future__ import annotations

from elbowroom.launch import build, mpi


def main() -> None:
    """Builds what is not built yet."""
    site = mpi.find_mpi("openmpi")
    build.probe(site)
    for name in build.APPLICATIONS:
        build.application(name, site)
    build.trace_libraries(site)
    build.trace_reader()
    build.network_bench(mpi=site)
    build.broadcast_bench(mpi=site)
    build.nic_library()
    build.probe(mpi.find_mpi("embedded"))
    build.trace_libraries(mpi.find_mpi("embedded"))


if __name__ == "__main__":
    main()
