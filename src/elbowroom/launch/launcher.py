"""What starts the ranks of a program: a launcher, what it is asked for, and the command line it makes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import read_text
from elbowroom.launch.mpi import Mpi, launch_environment


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`ranks` processes of the probe, `ranks_per_host` on each host.

    `hosts` and `hostfile` say where (both empty: this host, or the hosts of the allocation). `share_core`
    means that communication threads of several ranks share a core and must yield it while they wait;
    `library_progress` that the MPI starts a progress thread of its own.
    """

    ranks: int
    ranks_per_host: int
    probe: str
    mpi: Mpi
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None
    share_core: bool = True
    library_progress: bool = False
    arguments: tuple[str, ...] = ("measure",)

    @property
    def one_host(self) -> bool:
        """True when all ranks are on one host, so that messages go through shared memory."""
        return self.ranks <= self.ranks_per_host


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A command line and what it adds to the environment."""

    command: tuple[str, ...]
    env: dict[str, str]

    def line(self) -> str:
        """As one would type it into a shell."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in sorted(self.env.items())]
        return " ".join([*settings, *(shlex.quote(word) for word in self.command)])


Environment = Mapping[str, str]


@dataclass(frozen=True)
class Launcher:
    """A launcher; its file in `launchers/` declares it as `LAUNCHER`, or a package as an entry point of the
    group `elbowroom.launchers`. `env` is the caller's environment.

    `build` turns a request into a command line, or raises UsageError. `program` is what it starts ranks by,
    if that is not the launcher of the program's MPI, whose ranks are children of elbowroom. Inside an
    allocation that `detect` recognises it is the default, that with the highest `precedence` of several;
    `hosts` counts the allocation's hosts, and `names` are their names. `this_host_only`: it reaches no other.
    `joins_ranks`: programs that it starts on several hosts are ranks of one MPI job.
    """

    name: str
    build: Callable[[LaunchRequest, Environment], Launch]
    program: str = ""
    detect: Callable[[Environment], bool] = lambda env: False
    hosts: Callable[[Environment], int] = lambda env: 1
    names: Callable[[Environment], tuple[str, ...]] = lambda env: ()
    precedence: int = 0
    this_host_only: bool = False
    joins_ranks: bool = True


def program_words(request: LaunchRequest) -> tuple[str, ...]:
    """The program and its arguments."""
    return (request.probe, *request.arguments)


def given_hosts(request: LaunchRequest) -> tuple[str, ...]:
    """The hosts of the request; UsageError without any."""
    if request.hostfile:
        return read_hostfile(request.hostfile)
    if request.hosts:
        return request.hosts
    raise UsageError("mpiexec needs the hosts", field="hosts", hint="give --hosts a,b or --hostfile FILE")


def read_hostfile(path: str) -> tuple[str, ...]:
    """The different hosts of a hostfile, in order; slots and comments are skipped."""
    lines = _hostfile_text(path).splitlines()
    words = [line.split("#")[0].split() for line in lines]
    hosts = tuple(dict.fromkeys(word[0].split(":")[0] for word in words if word))
    if not hosts:
        raise UsageError("names no host", field="hostfile", value=path, hint="one host a line")
    return hosts


def _hostfile_text(path: str) -> str:
    return read_text(Path(path), field="hostfile", hint="name a text file with one host a line")


def check_slots(request: LaunchRequest) -> None:
    """Slots that are written down (`a slots=2`, `a:2`) are kept to; where none are, any number may start."""
    if request.hostfile:
        text = _hostfile_text(request.hostfile)
        counts = re.findall(r"^[^#\n]*?(?:\bslots\s*=\s*|:)(\d+)", text, re.MULTILINE)
    else:
        counts = [host.partition(":")[2] for host in request.hosts if ":" in host]
    slots = sum(int(count) for count in counts if count.isdigit())
    if counts and slots < request.ranks:
        raise UsageError(
            f"{request.ranks} ranks need more than the {slots} slots of the hosts",
            field="hostfile" if request.hostfile else "hosts",
            value=request.hostfile or ",".join(request.hosts),
            hint=f"give {request.ranks} slots, or a plan with fewer ranks",
        )


def needed_hosts(request: LaunchRequest) -> int:
    """How many hosts the ranks are on; UsageError where the request names fewer."""
    hosts = -(-request.ranks // request.ranks_per_host)
    if request.hosts and len(request.hosts) < hosts:
        raise too_few(request, len(request.hosts))
    return hosts


def too_few(request: LaunchRequest, hosts: int) -> UsageError:
    """The error for hosts that cannot take all ranks."""
    slots = hosts * request.ranks_per_host
    return UsageError(
        f"{request.ranks} ranks need more than the {slots} slots of {hosts} host(s)",
        field="ranks",
        value=request.ranks,
        hint=f"name {-(-request.ranks // request.ranks_per_host)} hosts",
    )


def outside(name: str, variable: str) -> UsageError:
    """The error for an allocation's launcher outside of any."""
    return UsageError(
        f"there is no allocation here ({variable} is not set)",
        field="launcher",
        value=name,
        hint="start elbowroom inside an allocation, or use --launcher local",
    )


def number_of(text: str | None) -> int:
    """The number of hosts that a variable or command gives; 1 where it gives none."""
    return int(text) if text and text.strip().isdigit() else 1


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
