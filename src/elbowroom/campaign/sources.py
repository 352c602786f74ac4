"""Where answers come from: the probe on this machine or allocation, an earlier run, or a virtual machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from elbowroom.campaign.measuring import shares_core
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch import build, modes, starpu
from elbowroom.launch.application import ApplicationSession, refused_threads
from elbowroom.launch.launchers import (
    Launch,
    LaunchRequest,
    build_launch,
    detect,
    host_count,
    missing_program,
)
from elbowroom.launch.mpi import find_mpi, spec_of
from elbowroom.launch.programs import ProgramSession
from elbowroom.launch.replay import PREFIX, Recorded, Replay
from elbowroom.launch.session import Conversation, Session
from elbowroom.machine.frequencies import CORE, UNCORE, Frequencies
from elbowroom.machine.made import topology_xml
from elbowroom.machine.topology import Machine, here, read_topology
from elbowroom.plan.point import Point, Program
from elbowroom.plan.reading import Plan
from elbowroom.store.folder import RunFolder

if TYPE_CHECKING:
    from elbowroom.virtual.answers import VirtualMachine

VIRTUAL = "virtual:"


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Which launcher, MPI and hosts a run was asked to use, or which virtual machine, with what noise and
    seed of it; all None or empty: the defaults.
    """

    launcher: str | None = None
    mpi: str | None = None
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None
    machine: str | None = None
    noise: float | None = None
    seed: int | None = None


class Source(Protocol):
    """What a campaign asks of the place the answers come from."""

    name: str
    mpi: dict[str, Any]
    live: bool

    def machine(self) -> Machine:
        """The machine as this process may use it."""

    def topology(self) -> str:
        """hwloc's XML of the (first) host."""

    def observers(self) -> dict[str, Any]:
        """What can be observed there: {name: {status, reason}}."""

    def state(self) -> dict[str, Any]:
        """The machine's state now."""

    def refuse(self, point: Point) -> str:
        """Why that point cannot be answered there; empty when it can."""

    def record(self, folder: Path) -> None:
        """From now on each probe records what its threads do, into a folder of its own: FOLDER/1, FOLDER/2
        ...; raises UsageError where nothing is started.
        """

    def command(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> str:
        """The exact command line that answers points of that many ranks; empty when nothing is started."""

    def open(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> Conversation:
        """Starts a conversation."""

    def application_command(self, point: Point) -> str:
        """The exact command line of the point's application; empty when nothing is started."""

    def start(self, point: Point) -> Conversation:
        """Starts the point's application, with all its threads."""


def choose(where: Where, env: Mapping[str, str] | None = None) -> Source:
    """The source that `where` names; without a launcher, that of the allocation this shell is in."""
    env = os.environ if env is None else env
    if where.machine is not None:
        return Simulated(where)
    if where.noise is not None:
        raise UsageError(
            "goes with a virtual machine only", field="noise", value=where.noise, mend="add --machine NAME"
        )
    if where.launcher is not None and where.launcher.startswith(PREFIX):
        return Recording(Path(where.launcher.removeprefix(PREFIX)))
    name = where.launcher or ("mpiexec" if where.hosts or where.hostfile else detect(env))
    return Live(name, where, env)


class Live:
    """The probe, started by a launcher."""

    live = True

    def __init__(self, name: str, where: Where, env: Mapping[str, str]) -> None:
        self.name = name
        self._env = env
        self._where = where
        self._mpi = find_mpi(where.mpi)
        self._hosts = host_count(name, where.hosts, where.hostfile, env)
        self.mpi = msgspec.to_builtins(self._mpi)
        self.probe = build.probe(self._mpi)
        self._topology: str | None = None
        self._no_starpu: str | None = None
        self._traces: Path | None = None
        self._traced = 0
        # A wrong launcher is refused before anything is measured or written.
        self.command(2 * self._hosts)

    def machine(self) -> Machine:
        """This host, or as many alike as the launcher reaches."""
        found = here(read_topology(self.topology()), memory=_kernel_memory())
        return settable(msgspec.structs.replace(found, hosts=self._hosts), self.name)

    def topology(self) -> str:
        """hwloc's XML of this host."""
        if self._topology is None:
            self._topology = modes.topology_xml(self.probe)
        return self._topology

    def observers(self) -> dict[str, Any]:
        """What the probe can observe here."""
        return modes.probe_output(self.probe, "observe")

    def state(self) -> dict[str, Any]:
        """The state of this host now."""
        return modes.probe_output(self.probe, "state")

    def refuse(self, point: Point) -> str:
        """The probe says itself what it cannot measure; what an application cannot is known before."""
        if point.program is not None and point.program.build == "starpu":
            return self._without_starpu()
        if point.application is None or len(point.comm_cores) < 2:
            return ""
        return refused_threads(self._mpi, self._hosts)

    def _without_starpu(self) -> str:
        """Why programs over StarPU cannot run here; empty where they can."""
        if self._no_starpu is None:
            self._no_starpu = starpu.refused(starpu.look(self._env), self._mpi)
        return self._no_starpu

    def record(self, folder: Path) -> None:
        """From now on each probe that is opened is recorded."""
        self._traces = folder

    def command(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> str:
        """The exact command line for that many ranks."""
        return build_launch(self.name, self._request(ranks, share_core, several_threads), self._env).line()

    def open(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> Conversation:
        """Starts the probe with that many ranks."""
        missing = missing_program(self.name, self._mpi)
        if missing:
            raise MachineError(missing, field="launcher", value=self.name, mend="choose another --launcher")
        request = self._request(ranks, share_core, several_threads)
        if self._traces is not None:
            self._traced += 1
            folder = (self._traces / str(self._traced)).absolute()
            request = msgspec.structs.replace(request, arguments=(*request.arguments, "--trace", str(folder)))
        return Session(build_launch(self.name, request, self._env), ranks=ranks, mpi=self._mpi)

    def application_command(self, point: Point) -> str:
        """The exact command line of the application; its settings are in a file made when it starts."""
        return self._launch_of(point, "CONFIG.json").line()

    def start(self, point: Point) -> Conversation:
        """Starts the application, built first where it is not there yet."""
        missing = missing_program(self.name, self._mpi)
        if missing:
            raise MachineError(missing, field="launcher", value=self.name, mend="choose another --launcher")
        if self._traces is not None:
            raise UsageError(
                "records the probe, and this plan's points are measured by applications",
                field="trace",
                mend="record the application itself: elbowroom trace record -- COMMAND",
            )
        session = ApplicationSession if point.program is None else ProgramSession
        return session(lambda config: self._launch_of(point, config), point, self._mpi)

    def _launch_of(self, point: Point, config: str) -> Launch:
        several = ("--threads", "multiple") if len(point.comm_cores) > 1 else ()
        if point.program is not None:
            ranks, name = point.program.ranks, program_name(point.program)
        else:
            assert point.application is not None
            ranks, name = point.application.nodes, point.application.name
        request = self._request(ranks, shares_core(point), bool(several))
        program = build.application(name, self._mpi)
        arguments = ("measure", *several, "--config", config)
        asked = msgspec.structs.replace(request, probe=str(program), arguments=arguments)
        return build_launch(self.name, asked, self._env)

    def _request(self, ranks: int, share_core: bool, several_threads: bool) -> LaunchRequest:
        return LaunchRequest(
            ranks=ranks,
            ranks_per_host=-(-ranks // self._hosts),
            probe=str(self.probe),
            mpi=self._mpi,
            hosts=self._where.hosts,
            hostfile=self._where.hostfile,
            share_core=share_core,
            arguments=("measure", "--threads", "multiple") if several_threads else ("measure",),
        )


class Recording:
    """An earlier run, answered again from its journal."""

    live = False

    def __init__(self, path: Path) -> None:
        self._run = RunFolder.open(path)
        self.name = f"{PREFIX}{path}"
        self.mpi = self._run.manifest.mpi

    def machine(self) -> Machine:
        """The recorded machine."""
        return self._run.manifest.machine

    def topology(self) -> str:
        """The recorded topology."""
        return self._run.topology()

    def observers(self) -> dict[str, Any]:
        """What could be observed there."""
        return self._run.manifest.observers

    def state(self) -> dict[str, Any]:
        """The state recorded before the measuring."""
        return self._run.manifest.state.get("before", {})

    def refuse(self, point: Point) -> str:
        """What is not in the recording is answered as failed."""
        return ""

    def record(self, folder: Path) -> None:
        """Nothing is started."""
        raise _nothing_to_record(self.name)

    def command(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> str:
        """Nothing is started."""
        return ""

    def open(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> Conversation:
        """A conversation with the recording."""
        recorded = (Recorded(unit=entry.unit, record=entry.record) for entry in self._run.entries())
        manifest = self._run.manifest
        return Replay({**manifest.hello, "kernels": list(manifest.kernels)}, recorded)

    def application_command(self, point: Point) -> str:
        """Nothing is started."""
        return ""

    def start(self, point: Point) -> Conversation:
        """A conversation with the recording."""
        return self.open(0)


class Simulated:
    """A virtual machine: nothing is started, measured or observed."""

    live = False

    def __init__(self, where: Where) -> None:
        for field in ("launcher", "mpi", "hosts", "hostfile"):
            value = getattr(where, field)
            if value:
                raise UsageError(
                    "cannot be given with --machine: a virtual machine starts nothing",
                    field=field,
                    value=value if isinstance(value, str) else ",".join(value),
                    mend="leave one of the two out",
                )
        assert where.machine is not None
        self._virtual = _virtual_machine(where.machine, where.noise, where.seed)
        self.name = f"{VIRTUAL}{where.machine}"
        self.mpi: dict[str, Any] = {}

    def machine(self) -> Machine:
        """Two hosts alike."""
        return self._virtual.machine

    def topology(self) -> str:
        """hwloc's XML, marked as virtual."""
        return topology_xml(self._virtual.machine)

    def observers(self) -> dict[str, Any]:
        """Nothing, and why."""
        return self._virtual.observers()

    def state(self) -> dict[str, Any]:
        """A virtual machine has none."""
        return {}

    def refuse(self, point: Point) -> str:
        """What its laws say nothing about."""
        if point.extraneous is not None:
            return "a virtual machine has no caches: extraneous accesses are measured on a real one"
        if point.program is not None:
            return _no_program(point.program)
        return self._virtual.refuse(point)

    def record(self, folder: Path) -> None:
        """Nothing is started."""
        raise _nothing_to_record(self.name)

    def command(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> str:
        """Nothing is started."""
        return ""

    def open(self, ranks: int, share_core: bool = True, several_threads: bool = False) -> Conversation:
        """A conversation with the virtual machine."""
        from elbowroom.launch.virtual import VirtualProbe

        return VirtualProbe(self._virtual, ranks)

    def application_command(self, point: Point) -> str:
        """Nothing is started."""
        return ""

    def start(self, point: Point) -> Conversation:
        """A conversation with a cluster of such machines."""
        from elbowroom.launch.virtual import VirtualCluster

        return VirtualCluster(self._virtual, point)


def _nothing_to_record(name: str) -> UsageError:
    return UsageError(
        f"{name} starts nothing that could be recorded",
        field="trace",
        mend="measure on a real machine, or leave --trace out",
    )


def _virtual_machine(spec: str, noise: float | None, seed: int | None) -> VirtualMachine:
    # Imported here: nothing else needs numpy or the published machines before it measures.
    from elbowroom.launch.simulator import simulate
    from elbowroom.launch.virtual import load
    from elbowroom.virtual.answers import NOISE, SEED, VirtualMachine

    found = load(spec)
    return VirtualMachine(
        found.definition,
        machine=found.machine,
        noise=NOISE if noise is None else noise,
        seed=SEED if seed is None else seed,
        simulate=simulate,
    )


def _no_program(program: Program) -> str:
    """Why a virtual machine does not answer a program, and what it answers in its stead."""
    said = "a virtual machine runs no programs: measured on a real one"
    if program.name != "kernels":
        return said
    return f"{said}; of bandwidth beside an arithmetic intensity it knows: elbowroom run intensity"


def with_starpu(where: Where, plan: Plan, tell: Callable[[str], object]) -> Where:
    """Where a plan with programs over StarPU runs: with StarPU's MPI for the whole run, unless `where` names
    another, or there is no StarPU.
    """
    real = where.machine is None and not (where.launcher or "").startswith(PREFIX)
    if where.mpi is not None or not real or not wants_starpu(plan):
        return where
    found = starpu.look()
    if isinstance(found, ElbowroomError):
        return where
    tell(f"programs over StarPU {found.version} run with its MPI, {found.mpi.name} in {found.mpi.prefix}")
    return msgspec.structs.replace(where, mpi=spec_of(found.mpi))


def wants_starpu(plan: Plan) -> bool:
    """Whether points of the plan may be programs over StarPU."""
    if plan.experiment == "polling":
        return bool(plan.backoffs)
    return plan.experiment == "runtime-overhead" or (plan.experiment == "kernels" and "starpu" in plan.builds)


def program_name(program: Program) -> str:
    """The executable of a program (launch.build.APPLICATIONS)."""
    return program.name if program.name == "runtime" else f"{program.name}-{program.build}"


def settable(machine: Machine, launcher: str, frequencies: Frequencies | None = None) -> Machine:
    """The machine with what may be set there: frequencies, on the host this process runs on."""
    if launcher != "local":
        reason = (
            f"only on the host elbowroom runs on, and launcher {launcher} may reach others; "
            "on one host: --launcher local"
        )
        return msgspec.structs.replace(machine, refused={CORE: reason, UNCORE: reason})
    found = (frequencies or Frequencies()).permitted()
    return msgspec.structs.replace(
        machine,
        permitted=tuple(name for name, one in found.items() if not one.reason),
        frequency_ranges={name: (one.low, one.high) for name, one in found.items() if not one.reason},
        refused={name: one.reason for name, one in found.items() if one.reason},
    )


def _kernel_memory() -> int | None:
    """Bytes of memory as the kernel counts them; None where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    total = next((line.split()[1] for line in lines if line.startswith("MemTotal:")), None)
    return int(total) * 1024 if total is not None else None
