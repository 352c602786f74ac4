"""Command lines of an MPI's own launcher, and the environment that each MPI needs."""

from __future__ import annotations

from collections.abc import Mapping

from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.mpi import launch_environment

_NETWORK_SETTINGS = ("UCX_", "FI_", "PSM2_", "PSM3_")
"""Prefixes of the variables of UCX, libfabric and the PSMs."""


def mpirun(request: LaunchRequest) -> tuple[str, ...]:
    """The part of the command that says how many; binding is the probe's own business."""
    command = [request.mpi.launcher, "-n", str(request.ranks)]
    if request.mpi.kind == "mpich":
        return (*command, "-bind-to", "none", "-ppn", str(request.ranks_per_host))
    if request.mpi.major >= 5:
        mapping = f"ppr:{request.ranks_per_host}:node:OVERSUBSCRIBE"
        return (*command, "--bind-to", "none", "--map-by", mapping)
    mapping = f"ppr:{request.ranks_per_host}:node"
    return (*command, "--bind-to", "none", "--oversubscribe", "--map-by", mapping)


def where(request: LaunchRequest) -> tuple[str, ...]:
    """Which hosts, in the spelling of the MPI."""
    mpich = request.mpi.kind == "mpich"
    if request.hostfile:
        return ("-f" if mpich else "--hostfile", request.hostfile)
    if mpich:
        return ("-hosts", ",".join(request.hosts))
    names = [host if ":" in host else f"{host}:{request.ranks_per_host}" for host in request.hosts]
    return ("--host", ",".join(names))


def forwarded(request: LaunchRequest, env: Mapping[str, str]) -> tuple[str, ...]:
    """Options that give the ranks of other hosts the user's settings of the network.

    Open MPI's launcher sends its own variables only; Hydra and srun send the whole environment.
    """
    if request.mpi.kind == "mpich":
        return ()
    names = sorted(name for name in env if name.startswith(_NETWORK_SETTINGS))
    return tuple(word for name in names for word in ("-x", name))


def mpi_environment(request: LaunchRequest, env: Mapping[str, str]) -> dict[str, str]:
    """What the MPI must be told; a variable the user has set already is left alone."""
    wanted = _openmpi(request) if request.mpi.kind == "openmpi" else _mpich(request)
    # Sockets of the launcher lie below TMPDIR and their paths may not exceed 107 bytes.
    if len(env.get("TMPDIR", "")) > 40:
        wanted["TMPDIR"] = "/tmp"
    return {name: value for name, value in wanted.items() if name == "TMPDIR" or name not in env}


def _openmpi(request: LaunchRequest) -> dict[str, str]:
    wanted = launch_environment()
    if request.share_core:
        wanted["OMPI_MCA_mpi_yield_when_idle"] = "1"
    if request.library_progress:
        wanted["OMPI_MCA_btl_tcp_progress_thread"] = "1"
    if not request.one_host:
        return wanted
    # One host: shared memory with two copies. A single copy by the kernel (CMA) is slower and noisier on
    # virtual machines (docs/design/method.md, last part), and UCX would choose a transport by itself.
    wanted["OMPI_MCA_pml"] = "ob1"
    if request.mpi.major >= 5:
        wanted |= {"OMPI_MCA_btl": "self,sm", "OMPI_MCA_smsc": "^cma,xpmem,knem"}
    else:
        wanted |= {"OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    return wanted


def _mpich(request: LaunchRequest) -> dict[str, str]:
    # One poll before yielding is the least: zero would switch yielding off.
    wanted = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"} if request.share_core else {}
    if request.library_progress:
        wanted["MPIR_CVAR_ASYNC_PROGRESS"] = "1"
    if request.one_host:
        # Shared memory with two copies, as for Open MPI above.
        wanted["UCX_TLS"] = "posix,sysv,self"
    return wanted
