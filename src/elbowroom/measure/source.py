"""Where answers come from: the probe on this machine or allocation, an earlier run, or a virtual machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from elbowroom import experiments
from elbowroom.documents import convert
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build, gpu, native, starpu, topologies
from elbowroom.launch.executables import simulate
from elbowroom.launch.launcher import Launch, LaunchRequest
from elbowroom.launch.launchers import build_launch, check_program, detect, host_count
from elbowroom.launch.mpi import find_mpi, refused_persistent, refused_progress, refused_threads, spec_of
from elbowroom.launch.session import (
    PREFIX,
    Conversation,
    ProgramSession,
    RecordedAnswer,
    RecordedConversation,
    Session,
)
from elbowroom.launch.virtual import VirtualCluster, VirtualProbe, load
from elbowroom.machine.frequencies import GOVERNOR, Frequencies
from elbowroom.machine.gpu import GpuFacts
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.layout import topology_xml
from elbowroom.machine.state import Failure
from elbowroom.machine.topology import Machine, here
from elbowroom.plan.file import Plan
from elbowroom.points.point import Needs, Point
from elbowroom.points.probe import ProbeStart
from elbowroom.points.unit import Unit
from elbowroom.store.folder import RunFolder
from elbowroom.virtual.answers import NOISE, SEED, VirtualMachine

VIRTUAL = "virtual:"


class Where(msgspec.Struct, frozen=True):
    """Which launcher, MPI and hosts a run was asked to use, or which virtual machine, with what noise and
    seed of it; all None or empty: the defaults. `most_hosts`: only so many of these hosts, the first ones.
    """

    launcher: str | None = None
    mpi: str | None = None
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None
    machine: str | None = None
    noise: float | None = None
    seed: int | None = None
    most_hosts: int | None = None

    @classmethod
    def of(
        cls,
        launcher: str | None,
        mpi: str | None,
        hosts: Sequence[str],
        hostfile: str | None,
        machine: str | None = None,
        noise: float | None = None,
        seed: int | None = None,
    ) -> Where:
        """From the arguments of the interface, where the seed is also that of the order of points."""
        seed = None if machine is None else seed
        return cls(launcher, mpi, tuple(hosts), hostfile, machine, noise, seed)

    @classmethod
    def stored(cls, data: Mapping[str, Any], file: Path) -> Where:
        """From the manifest of a run or the file of a study; UsageError for what is none."""
        hint = "restore the file from a copy"
        return convert(data, cls, where=str(file), subject="where", prefix="where.", hint=hint)


class Source(Protocol):
    """What a run asks of the place the answers come from."""

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

    def command(self, start: ProbeStart) -> str:
        """The exact command line of a probe, or program, started so; empty when nothing is started."""

    def open(self, start: ProbeStart) -> Conversation:
        """Starts a conversation with the probe, or with a program in its place."""


def choose(where: Where, env: Mapping[str, str] | None = None) -> Source:
    """The source that `where` names; without a launcher, that of the allocation this shell is in."""
    env = os.environ if env is None else env
    if where.machine is not None:
        return VirtualSource(where)
    if where.noise is not None:
        raise UsageError(
            "is only valid with a virtual machine",
            field="noise",
            value=where.noise,
            hint="add --machine NAME",
        )
    if where.launcher is not None and where.launcher.startswith(PREFIX):
        _refuse_launch(
            where, ("mpi", "hosts", "hostfile"), f"--launcher {where.launcher}: an earlier run answers"
        )
        return RecordedSource(Path(where.launcher.removeprefix(PREFIX)))
    name = where.launcher or ("mpiexec" if where.hosts or where.hostfile else detect(env))
    return Live(name, where, env)


def _refuse_launch(where: Where, options: Sequence[str], other: str) -> None:
    """UsageError for an option of the launch that would be ignored beside the `other` one."""
    for field in options:
        value = getattr(where, field)
        if value:
            raise UsageError(
                f"cannot be given with {other}",
                field=field,
                value=value if isinstance(value, str) else ",".join(value),
                hint="leave one of the two out",
            )


class Live:
    """The probe, started by a launcher."""

    live = True

    def __init__(self, name: str, where: Where, env: Mapping[str, str]) -> None:
        self.name = name
        self._env = env
        self._where = _first_hosts(where)
        self._mpi = find_mpi(where.mpi)
        reached = host_count(name, where.hosts, where.hostfile, env)
        self._hosts = min(reached, where.most_hosts or reached)
        self.mpi = msgspec.to_builtins(self._mpi)
        self.probe = build.probe(self._mpi)
        self._topology: str | None = None
        self._no_starpu: str | None = None
        self._gpu: GpuFacts | Failure | None = None
        self._facts: dict[str, Any] | None = None
        self._traces: Path | None = None
        self._traced = 0
        # A wrong launcher is refused before anything is measured or written.
        self.command(ProbeStart(2 * self._hosts))

    def machine(self) -> Machine:
        """This host, or as many alike as the launcher reaches."""
        this_host = here(read_topology(self.topology()), memory=_kernel_memory())
        return settable(msgspec.structs.replace(this_host, hosts=self._hosts))

    def topology(self) -> str:
        if self._topology is None:
            # Before the probe is built, in a dry run, its library is asked.
            built = self.probe.exists()
            self._topology = topologies.topology_xml(self.probe) if built else topologies.own_topology_xml()
        return self._topology

    def observers(self) -> dict[str, Any]:
        """What the probe can observe here; nothing is known before it is built, in a dry run."""
        return topologies.probe_output(self.probe, "observe") if self.probe.exists() else {}

    def state(self) -> dict[str, Any]:
        return topologies.probe_output(self.probe, "state")

    def refuse(self, point: Point) -> str:
        """The probe says itself what it cannot measure; what an application cannot is known before."""
        needs = point.workload.needs
        if needs.starpu:
            return self._without_starpu()
        if needs.gpu is not None:
            facts = self._gpu_facts(point.workload.program)
            return "" if facts is None else needs.gpu(facts)
        if not point.workload.program:
            return self._without_features(needs)
        if len(point.comm_cores) < 2:
            return ""
        return refused_threads(self._mpi, self._hosts)

    def _without_features(self, needs: Needs) -> str:
        """Why the MPI cannot make the calls that are needed; empty where it can, or if that is unknown."""
        if needs.library_progress and (reason := refused_progress(self._mpi, self._hosts)):
            return reason
        if not (needs.several_threads or needs.persistent_call):
            return ""
        facts = self._mpi_facts()
        if needs.several_threads and facts.get("thread_level", "multiple") != "multiple":
            return f"{self._mpi.name} does not grant MPI_THREAD_MULTIPLE; choose another --mpi"
        if needs.persistent_call and not facts.get("persistent_collectives", True):
            return f"{self._mpi.name} has no persistent collectives (MPI_Allreduce_init)"
        return refused_persistent(self._mpi, needs.persistent_call)

    def _mpi_facts(self) -> dict[str, Any]:
        """What the MPI says of itself when one rank of the probe starts; empty where none does."""
        if self._facts is None:
            self._facts = {}
            if not self.probe.exists():  # in a dry run
                return self._facts
            with contextlib.suppress(ElbowroomError):
                probe = self.open(ProbeStart(1, False, True))
                self._facts = dict(probe.hello.get("mpi", {}))
                probe.close()
        return self._facts

    def _gpu_facts(self, program: str) -> GpuFacts | Failure | None:
        """What there is of an accelerator, as the program that answers sees it; None where it must be built
        first and nothing is (in a dry run).
        """
        if self._gpu is None:
            if gpu.missing_driver() is None and not build.application(program, self._mpi).exists():
                return None
            self._gpu = gpu.gpu_facts(lambda: build.application(program, self._mpi))
        return self._gpu

    def _without_starpu(self) -> str:
        """Why programs over StarPU cannot run here; empty where they can."""
        if self._no_starpu is None:
            self._no_starpu = starpu.refused(starpu.look(self._env), self._mpi)
        return self._no_starpu

    def record(self, folder: Path) -> None:
        """From now on each probe that is opened is recorded."""
        self._traces = folder

    def command(self, start: ProbeStart) -> str:
        """A program's settings are in a file that is made when it starts."""
        if start.program is not None:
            return self._program_launch(start, start.program, "CONFIG.json").line()
        return build_launch(self.name, self._request(start), self._env).line()

    def open(self, start: ProbeStart) -> Conversation:
        """A program is built first if it is not there yet."""
        check_program(self.name, self._mpi)
        point = start.program
        if point is not None:
            if self._traces is not None:
                raise UsageError(
                    "records the probe, and this plan's points are measured by applications",
                    field="trace",
                    hint="record the application itself: elbowroom trace record -- COMMAND",
                )
            startup = point.workload.startup(point)
            return ProgramSession(
                lambda config: self._program_launch(start, point, config), startup, self._mpi
            )
        request = self._request(start)
        if self._traces is not None:
            self._traced += 1
            folder = (self._traces / str(self._traced)).absolute()
            request = msgspec.structs.replace(request, arguments=(*request.arguments, "--trace", str(folder)))
        return Session(build_launch(self.name, request, self._env), ranks=start.ranks, mpi=self._mpi)

    def _program_launch(self, start: ProbeStart, point: Point, config: str) -> Launch:
        several = ("--threads", "multiple") if len(point.comm_cores) > 1 else ()
        base = self._request(start)
        program, *words = build.program_words(point.workload.program, self._mpi)
        arguments = (*words, "measure", *several, "--config", config)
        if point.workload.needs.gpu is not None:
            folders = gpu.library_folders()
            arguments = (*arguments, *(word for folder in folders for word in ("--library", str(folder))))
        request = msgspec.structs.replace(base, probe=program, arguments=arguments)
        return build_launch(self.name, request, self._env)

    def _request(self, start: ProbeStart) -> LaunchRequest:
        return LaunchRequest(
            ranks=start.ranks,
            ranks_per_host=-(-start.ranks // self._hosts),
            probe=str(self.probe),
            mpi=self._mpi,
            hosts=self._where.hosts,
            hostfile=self._where.hostfile,
            share_core=start.share_core,
            library_progress=start.library_progress,
            arguments=("measure", "--threads", "multiple") if start.several_threads else ("measure",),
        )


class _NothingStarted:
    """What sources have in common that start no program."""

    live = False
    name: str

    def record(self, folder: Path) -> None:
        raise UsageError(
            f"{self.name} starts nothing that could be recorded",
            field="trace",
            hint="measure on a real machine, or leave --trace out",
        )

    def command(self, start: ProbeStart) -> str:
        return ""


class RecordedSource(_NothingStarted):
    """An earlier run, answered again from its journal."""

    def __init__(self, path: Path) -> None:
        self._run = RunFolder.open(path)
        self.name = f"{PREFIX}{path}"
        self.budget = self._run.manifest.budget
        self.mpi = self._run.manifest.mpi

    def machine(self) -> Machine:
        return self._run.manifest.machine

    def topology(self) -> str:
        return self._run.topology()

    def observers(self) -> dict[str, Any]:
        return self._run.manifest.observers

    def state(self) -> dict[str, Any]:
        return self._run.manifest.state.get("before", {})

    def recorded(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """The units without those that a recorded point has no answer for: time decided how many it got."""
        answered = {entry.unit for entry in self._run.entries()}
        points = {unit.point for unit in answered}
        return tuple(unit for unit in units if unit in answered or unit.point not in points)

    def refuse(self, point: Point) -> str:
        """What is not in the recording is answered as failed."""
        return ""

    def open(self, start: ProbeStart) -> Conversation:
        recorded = (RecordedAnswer(unit=entry.unit, record=entry.record) for entry in self._run.entries())
        manifest = self._run.manifest
        return RecordedConversation({**manifest.hello, "kernels": list(manifest.kernels)}, recorded)


class VirtualSource(_NothingStarted):
    """A virtual machine: nothing is started, measured or observed."""

    def __init__(self, where: Where) -> None:
        options = ("launcher", "mpi", "hosts", "hostfile")
        _refuse_launch(where, options, "--machine: a virtual machine starts nothing")
        assert where.machine is not None
        self._virtual = _virtual_machine(where.machine, where.noise, where.seed)
        self.name = f"{VIRTUAL}{where.machine}"
        self.mpi: dict[str, Any] = {}

    def machine(self) -> Machine:
        """Two hosts alike."""
        return self._virtual.machine

    def topology(self) -> str:
        return topology_xml(self._virtual.machine)

    def observers(self) -> dict[str, Any]:
        """Nothing, and why."""
        return self._virtual.observers()

    def state(self) -> dict[str, Any]:
        """A virtual machine has none."""
        return {}

    def refuse(self, point: Point) -> str:
        """What its laws say nothing about; unknown where a simulator answers that must be built first and
        nothing is (in a dry run).
        """
        if self._virtual.definition.truth == "requests" and not build.simulator().exists():
            return ""
        return self._virtual.refuse(point)

    def open(self, start: ProbeStart) -> Conversation:
        """A conversation with the virtual machine, or with a cluster of such machines."""
        if start.program is None or start.program.workload.virtual_refusal:
            return VirtualProbe(self._virtual, start.ranks)
        return VirtualCluster(self._virtual, start.program)


def _virtual_machine(spec: str, noise: float | None, seed: int | None) -> VirtualMachine:
    virtual = load(spec)
    machine = VirtualMachine(
        virtual.definition,
        machine=virtual.machine,
        noise=NOISE if noise is None else noise,
        seed=SEED if seed is None else seed,
        simulate=simulate,
    )
    if not native.is_dry_run():
        _ = machine.truth  # what cannot be is refused before anything is written
    return machine


def with_starpu(where: Where, plan: Plan, tell: Callable[[str], object]) -> Where:
    """Where a plan with programs over StarPU runs: with StarPU's MPI for the whole run, unless `where` names
    another, or there is no StarPU.
    """
    real = where.machine is None and not (where.launcher or "").startswith(PREFIX)
    if where.mpi is not None or not real or not experiments.get(plan.experiment).needs_starpu(plan):
        return where
    native.install(f"pkg-config {starpu.DEBIAN_PACKAGES}")
    installed = starpu.look()
    if isinstance(installed, ElbowroomError):
        return where
    mpi = installed.mpi
    tell(f"programs over StarPU {installed.version} run with its MPI, {mpi.name} in {mpi.prefix}")
    return msgspec.structs.replace(where, mpi=spec_of(mpi))


def _first_hosts(where: Where) -> Where:
    """With so many of the named hosts as are used: some launchers take all that are named."""
    if where.most_hosts is None:
        return where
    return msgspec.structs.replace(where, hosts=tuple(dict.fromkeys(where.hosts))[: where.most_hosts])


def settable(machine: Machine, frequencies: Frequencies | None = None) -> Machine:
    """The machine with what may be set on this host; other hosts of a job refuse for themselves."""
    settings = (frequencies or Frequencies()).permitted()
    return msgspec.structs.replace(
        machine,
        permitted=tuple(name for name, setting in settings.items() if not setting.reason),
        frequency_ranges={
            name: (setting.low, setting.high) for name, setting in settings.items() if setting.high
        },
        governors=settings[GOVERNOR].choices,
        refused={name: setting.reason for name, setting in settings.items() if setting.reason},
    )


def _kernel_memory() -> int | None:
    """Bytes of memory as the kernel counts them; None where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    total = next((line.split()[1] for line in lines if line.startswith("MemTotal:")), None)
    return int(total) * 1024 if total is not None else None
