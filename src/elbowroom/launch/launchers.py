"""Launchers: each turns a request for ranks into one command line and the environment it needs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import read_text
from elbowroom.launch.mpi import Mpi, launch_environment, stdout_of


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`ranks` processes of the probe, `ranks_per_host` on each host.

    `hosts` and `hostfile` say where (both empty: this host, or the hosts of the allocation). `share_core`
    means that communication threads of several ranks share a core and must yield it while they wait.
    """

    ranks: int
    ranks_per_host: int
    probe: str
    mpi: Mpi
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None
    share_core: bool = True
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


Builder = Callable[[LaunchRequest, Mapping[str, str]], Launch]


def names() -> tuple[str, ...]:
    """The launchers that start processes."""
    return tuple(_LAUNCHERS)


def detect(env: Mapping[str, str]) -> str:
    """The launcher of the allocation this shell is in; `local` outside of any.

    A second allocation inside one (flux under Slurm) wins, since it is the nearer one.
    """
    if env.get("FLUX_URI"):
        return "flux"
    if env.get("SLURM_JOB_ID"):
        return "srun"
    if env.get("PBS_NODEFILE"):
        return "pbs"
    return "local"


def build_launch(name: str, request: LaunchRequest, env: Mapping[str, str] | None = None) -> Launch:
    """The command line of launcher `name` for `request`; `env` is the caller's environment."""
    builder = _LAUNCHERS.get(name)
    if builder is None:
        raise UsageError(
            "no such launcher",
            field="launcher",
            value=name,
            hint=f"one of: {', '.join([*_LAUNCHERS, 'replay:RUN'])}",
        )
    if request.hosts and request.hostfile:
        raise UsageError("hosts are given twice", field="hosts", hint="give --hosts or --hostfile, not both")
    return builder(request, os.environ if env is None else env)


def local(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """All ranks on this host, by the launcher of the probe's own MPI."""
    if request.hosts or request.hostfile:
        raise UsageError(
            "the local launcher knows this host only",
            field="launcher",
            value="local",
            hint="take --launcher mpiexec for several hosts",
        )
    here = msgspec.structs.replace(request, ranks_per_host=request.ranks)
    return Launch(command=(*_mpirun(here), *_program(here)), env=_environment(here, env))


def mpiexec(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """Ranks on the hosts of --hosts or --hostfile, by the launcher of the probe's own MPI."""
    hosts = _hosts(request)
    if len(hosts) * request.ranks_per_host < request.ranks:
        raise _too_few(request, len(hosts))
    _enough_slots(request)
    return Launch(
        command=(*_mpirun(request), *_where(request), *_program(request)), env=_environment(request, env)
    )


def pbs(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """Ranks on the hosts of a PBS allocation, by mpiexec with the allocation's file of nodes."""
    hostfile = env.get("PBS_NODEFILE", "")
    if not hostfile:
        raise _outside("pbs", "PBS_NODEFILE")
    return mpiexec(msgspec.structs.replace(request, hostfile=request.hostfile or hostfile, hosts=()), env)


def srun(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """A step of a Slurm allocation; PMI as the probe's MPI speaks it, binding left to the probe."""
    if not env.get("SLURM_JOB_ID"):
        raise _outside("srun", "SLURM_JOB_ID")
    hosts = _host_count(request)
    command = [
        "srun",
        f"--ntasks={request.ranks}",
        f"--nodes={hosts}",
        f"--ntasks-per-node={request.ranks_per_host}",
        "--distribution=block",
        "--cpu-bind=none",
        "--overlap",
        f"--mpi={'pmix' if request.mpi.kind == 'openmpi' else 'pmi2'}",
        "--input=0",
        "--unbuffered",
        "--kill-on-bad-exit=1",
    ]
    if request.hosts:
        command.append(f"--nodelist={','.join(request.hosts)}")
    return Launch(command=(*command, *_program(request)), env=_environment(request, env))


def flux(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """A job of the Flux instance this shell is in."""
    if not env.get("FLUX_URI"):
        raise _outside("flux", "FLUX_URI")
    command = [
        "flux",
        "run",
        f"--nodes={_host_count(request)}",
        f"--tasks-per-node={request.ranks_per_host}",
        "--exclusive",
        "--unbuffered",
        "--input=0",
        "-o",
        "cpu-affinity=off",
    ]
    if request.hosts:
        command.append(f"--requires=host:{','.join(request.hosts)}")
    return Launch(command=(*command, *_program(request)), env=_environment(request, env))


_LAUNCHERS: dict[str, Builder] = {"local": local, "mpiexec": mpiexec, "srun": srun, "flux": flux, "pbs": pbs}


def host_count(name: str, hosts: tuple[str, ...], hostfile: str | None, env: Mapping[str, str]) -> int:
    """How many hosts launcher `name` reaches: those given, else those of the allocation; 1 for `local`."""
    if name == "local":
        return 1
    if hosts:
        return len(set(hosts))
    if hostfile:
        return len(read_hostfile(hostfile))
    if name == "pbs" and env.get("PBS_NODEFILE"):
        return len(read_hostfile(env["PBS_NODEFILE"]))
    if name == "srun":
        return _number(env.get("SLURM_JOB_NUM_NODES") or env.get("SLURM_NNODES"))
    if name == "flux" and shutil.which("flux"):
        return _number(stdout_of("flux", "getattr", "size"))
    return 1


def _number(text: str | None) -> int:
    return int(text) if text and text.strip().isdigit() else 1


def missing_program(name: str, mpi: Mpi) -> str:
    """Why launcher `name` cannot start anything here; empty when it can."""
    program = name if name in ("srun", "flux") else mpi.launcher
    return "" if shutil.which(program) else f"{program} is not in PATH"


def _program(request: LaunchRequest) -> tuple[str, ...]:
    return (request.probe, *request.arguments)


def _mpirun(request: LaunchRequest) -> tuple[str, ...]:
    """The part of the command that says how many; binding is the probe's own business."""
    command = [request.mpi.launcher, "-n", str(request.ranks)]
    if request.mpi.kind == "mpich":
        return (*command, "-bind-to", "none", "-ppn", str(request.ranks_per_host))
    if request.mpi.major >= 5:
        mapping = f"ppr:{request.ranks_per_host}:node:OVERSUBSCRIBE"
        return (*command, "--bind-to", "none", "--map-by", mapping)
    mapping = f"ppr:{request.ranks_per_host}:node"
    return (*command, "--bind-to", "none", "--oversubscribe", "--map-by", mapping)


def _where(request: LaunchRequest) -> tuple[str, ...]:
    """Which hosts, in the spelling of the MPI."""
    mpich = request.mpi.kind == "mpich"
    if request.hostfile:
        return ("-f" if mpich else "--hostfile", request.hostfile)
    if mpich:
        return ("-hosts", ",".join(request.hosts))
    names = [host if ":" in host else f"{host}:{request.ranks_per_host}" for host in request.hosts]
    return ("--host", ",".join(names))


def _hosts(request: LaunchRequest) -> tuple[str, ...]:
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


def _enough_slots(request: LaunchRequest) -> None:
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


def _host_count(request: LaunchRequest) -> int:
    hosts = -(-request.ranks // request.ranks_per_host)
    if request.hosts and len(request.hosts) < hosts:
        raise _too_few(request, len(request.hosts))
    return hosts


def _too_few(request: LaunchRequest, hosts: int) -> UsageError:
    slots = hosts * request.ranks_per_host
    return UsageError(
        f"{request.ranks} ranks need more than the {slots} slots of {hosts} host(s)",
        field="ranks",
        value=request.ranks,
        hint=f"name {-(-request.ranks // request.ranks_per_host)} hosts",
    )


def _outside(name: str, variable: str) -> UsageError:
    return UsageError(
        f"there is no allocation here ({variable} is not set)",
        field="launcher",
        value=name,
        hint="start elbowroom inside an allocation, or take --launcher local",
    )


def _environment(request: LaunchRequest, env: Mapping[str, str]) -> dict[str, str]:
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
    if request.one_host:
        # Shared memory with two copies, as for Open MPI above.
        wanted["UCX_TLS"] = "posix,sysv,self"
    return wanted
