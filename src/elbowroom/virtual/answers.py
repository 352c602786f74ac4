"""A virtual machine's answers to the probe's requests (docs/reference/protocol.md); no time passes."""

from __future__ import annotations

import functools
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.models.run_data import layout_of
from elbowroom.plan.kernels import KERNELS, Kernel, find
from elbowroom.plan.placement import near_node
from elbowroom.points.point import Point, Steady
from elbowroom.points.steps import ApplicationSteps
from elbowroom.points.unit import Unit
from elbowroom.virtual import hosts
from elbowroom.virtual.credits import Credits
from elbowroom.virtual.definition import Definition
from elbowroom.virtual.effects import (
    HOSTS,
    Effect,
    EffectQuery,
    answer_accesses,
    answer_matrices,
    answer_messages,
    chosen,
    name_of,
    value,
)
from elbowroom.virtual.gpu_answers import HostMachine, answer_case, refuse_case
from elbowroom.virtual.laws import Exchange, ProcessRates, Work, answer
from elbowroom.virtual.machines import machine_of, truth_of
from elbowroom.virtual.partitions import scaled
from elbowroom.virtual.requests import Requests, Simulate
from elbowroom.virtual.truth import FLAG, Truth, check_noise, repetition_record

LIBRARY = "virtual"
OBSERVERS = (
    "context_switches",
    "counters",
    "frequency",
    "interrupts",
    "load",
    "migrations",
    "pages",
    "steal",
)
NOT_OBSERVED = "virtual machine: nothing is measured"
NOISE = 0.01
"""Relative standard deviation of every value, unless told otherwise."""

SEED = 1

SCHEDULING = "two threads on one core measure the scheduler, and none is simulated"
PER_CORE = (
    "the published law knows one process of a socket, and several share one; use --machine {name}:credits"
)
POOL = "no list of tasks is simulated: polling and paused workers are measured on a real machine"


class VirtualMachine:
    """A definition, the machine made of it, and its truth behind noise.

    `machine`: another description of the same shape (hwloc's), for its numbers of cores and nodes.
    `simulate` runs the simulator, for the truth `requests`.
    """

    def __init__(
        self,
        definition: Definition,
        *,
        machine: Machine | None = None,
        noise: float = NOISE,
        seed: int = SEED,
        simulate: Simulate | None = None,
    ) -> None:
        check_noise(noise)
        self.definition = definition
        self.machine = machine_of(definition) if machine is None else machine
        self.noise, self.seed = noise, seed
        self._simulate = simulate
        if definition.truth != "requests" or simulate is None:
            _ = self.truth  # what cannot be is refused now
        self._node = {number: index for index, number in enumerate(layout_of(self.machine).nodes)}
        sockets = self.machine.socket_of
        self._socket = {core.number: sockets[core.package] for core in self.machine.cores}
        self._host_of_gpu: HostMachine | None = None
        self._answers: dict[tuple[hosts.Process, ...], tuple[ProcessRates, ...]] = {}

    @functools.cached_property
    def truth(self) -> Truth:
        """What answers; made when it is first needed where the simulator must run for it."""
        return truth_of(self.definition, self._simulate)

    def hello(self, ranks: int) -> dict[str, Any]:
        """The first line of a probe: as docs/reference/protocol.md, and under `virtual` what is simulated."""
        name = self.definition.name
        return {
            "record": "hello",
            "protocol": 1,
            "ranks": [{"rank": rank, "host": name, "cpuset": ""} for rank in range(ranks)],
            "mpi": {"library": LIBRARY, "transport": LIBRARY},
            "clock": {"source": LIBRARY},
            "kernels": [
                msgspec.to_builtins(kernel) | {"description": "simulated"} for kernel in KERNELS.values()
            ],
            "virtual": {
                "definition": msgspec.json.decode(msgspec.json.encode(self.definition)),
                "noise": self.noise,
                "seed": self.seed,
            },
        }

    def observers(self) -> dict[str, Any]:
        """Nothing can be observed, and why."""
        return {name: {"status": "n/a", "reason": NOT_OBSERVED} for name in OBSERVERS}

    def refuse(self, point: Point) -> str:
        """Why a point cannot be answered; empty when it can."""
        if point.workload.needs.gpu is not None:
            return self._refuse_gpu(point)
        if self._planted(_first_request(point)):
            return ""
        if point.workload.virtual_refusal:
            return point.workload.virtual_refusal
        if point.scheduling and "AB" in point.sequence:
            return SCHEDULING
        kernel = find(point.kernel)
        if kernel is not None and kernel.pool:
            return POOL
        if point.processes == "core" and self.definition.truth not in ("credits", "requests"):
            return PER_CORE.format(name=self.definition.name)
        try:
            if isinstance(point.workload, ApplicationSteps):
                return self._refuse_step(point, point.workload)
            if not point.workload.program:
                self._every(_first_request(point))
        except UsageError as error:
            return error.sentence()
        return ""

    def _refuse_gpu(self, point: Point) -> str:
        """Why a case of an accelerator cannot be answered; empty where it can."""
        gpu = self.definition.gpu
        if isinstance(gpu, msgspec.UnsetType):
            return point.workload.virtual_refusal
        query = _first_request(point)
        refusal = point.workload.needs.gpu
        assert refusal is not None
        return refusal(gpu.facts(self.definition.nic_node)) or refuse_case(
            gpu, self.gpu_host(), cast("Mapping[str, Any]", query["case"])
        )

    def gpu_host(self) -> HostMachine:
        """The host of its accelerator, always as a network of credits: published curves know no copies."""
        if self._host_of_gpu is None:
            network = self.truth
            if not isinstance(network, Credits):
                network = truth_of(msgspec.structs.replace(self.definition, truth="credits"))
            assert isinstance(network, Credits)
            near = {core.number: self._node[core.node] for core in self.machine.cores}
            self._host_of_gpu = HostMachine(
                definition=self.definition,
                network=network,
                socket=self._socket.__getitem__,
                node=self._node.__getitem__,
                near=near.__getitem__,
            )
        return self._host_of_gpu

    def _refuse_step(self, point: Point, steps: ApplicationSteps) -> str:
        """Why a step of an application cannot be answered where steps are published; empty when it can.
        UsageError for a mesh that no numbers of parts are known of.
        """
        scaled(steps.cells, steps.processes)
        step = self.definition.published_step(steps.processes)
        if step is None:
            return ""
        if steps.variant == "apart" and step.apart is None:
            return f"{self.definition.name} has no published step one after the other"
        if len(point.comm_cores) > 1:
            return f"{self.definition.name} has published steps with one communication thread"
        return ""

    def answer(self, unit: Unit, fields: Mapping[str, Any], start: Unit | None = None) -> dict[str, Any]:
        """The record of one repetition: every phase of the request's sequence, each with its own noise.
        `start`: the first unit that this start of the program was query for.
        """
        if "case" in fields:
            return self._answer_gpu(unit, fields, start)
        if self._planted(fields):
            return self._effects_only(unit, fields)
        exact = [self._changed(item, fields) for item in self._every(fields)]
        phases = fields["sequence"]
        factors = [
            [[comp * shared[0], comm * shared[1]] for comp, comm in processes]
            for phase, processes in zip(
                phases, self._factors(unit, (len(phases), len(exact), 2)), strict=True
            )
            for shared in (self.start_factors(start, f"{unit.point} {phase}"),)
        ]
        kernel = find(fields["kernel"])
        return repetition_record(
            unit,
            [
                {
                    "phase": phase,
                    "index": index,
                    "start_ns": 0,
                    "end_ns": 0,
                    "measured_s": 0.0,
                    "status": "ok",
                    "flags": [FLAG],
                    **_sides(phase, exact, factors[index], kernel, fields["metric"]),
                }
                for index, phase in enumerate(phases)
            ],
        )

    def _answer_gpu(self, unit: Unit, fields: Mapping[str, Any], start: Unit | None) -> dict[str, Any]:
        """The record of a repetition of a case of the accelerator."""
        gpu = self.definition.gpu
        assert not isinstance(gpu, msgspec.UnsetType), "such points are refused"

        def factors(phases: int, sides: int) -> list[list[float]]:
            drawn = self._factors(unit, (phases, sides, 2))
            shared = [self.start_factors(start, f"{unit.point} {phase}")[0] for phase in fields["sequence"]]
            return [[one[0] * factor for one in row] for row, factor in zip(drawn, shared, strict=True)]

        return answer_case(gpu, self.gpu_host(), unit, fields, factors)

    def _effect_query(self, fields: Mapping[str, Any]) -> EffectQuery:
        """The request as effects see it."""
        nodes = {core.number: core.node for core in self.machine.cores}
        near = near_node(self.machine)
        return EffectQuery(
            name=name_of(fields),
            fields=dict(fields),
            data="near" if fields["comp_node"] == near else "far",
            thread="near" if nodes.get(fields["comm_cores"][0]) == near else "far",
        )

    def _planted(self, fields: Mapping[str, Any]) -> bool:
        """Whether only effects answer: no law is about programs, lists of tasks and memory accesses."""
        if not self.definition.effects or "kernel" not in fields:
            return False
        kernel = None if "program" in fields or "extraneous" in fields else find(fields["kernel"])
        lawless = "program" in fields or "extraneous" in fields or (kernel is not None and kernel.pool)
        return lawless and bool(chosen(self.definition.effects, self._effect_query(fields)))

    def _changed(self, exact: ProcessRates, fields: Mapping[str, Any]) -> ProcessRates:
        """What the law says of both sides together, as effects change it."""
        if not self.definition.effects:
            return exact
        query = self._effect_query(fields)
        effects = chosen(self.definition.effects, query)
        comm, comp = value(effects, "comm", query), value(effects, "comp", query)
        added = value(effects, "added", query)
        if comm is not None or added is not None:
            exact = msgspec.structs.replace(
                exact,
                comm_together=exact.comm_alone * (comm or 1.0),
                latency_together=exact.latency_alone / (comm or 1.0) + (added or 0.0),
            )
        for effect in effects:
            exact = scaled_rates(exact, effect)
        pace = value(effects, "comp_alone", query)
        if pace is not None and exact.comp_alone is not None and exact.comp_together is not None:
            alone, together = exact.comp_alone * pace, exact.comp_together * pace
            exact = msgspec.structs.replace(exact, comp_alone=alone, comp_together=together)
        if comp is not None and exact.comp_alone is not None:
            exact = msgspec.structs.replace(exact, comp_together=exact.comp_alone * comp)
        return exact

    def _effects_only(self, unit: Unit, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A program, polling workers or accesses: alone by the law of messages, together by effects."""
        query = self._effect_query(fields)
        effects = chosen(self.definition.effects, query)
        idle = self._every({**fields, "kernel": "none", "size": max(1, fields["size"]), "placements": None})[
            0
        ]
        factors = self._factors(unit, (len(fields["sequence"]), 1, 2))
        if "extraneous" in fields:
            words = [zlib.crc32(text.encode()) for text in (self.definition.name, unit.point)]
            rng = np.random.default_rng([self.seed, *words, unit.repetition])
            return answer_accesses(unit, effects, query, idle.latency_alone, rng)
        if "program" in fields and fields["program"]["name"] == "kernels":
            cores = max(1, int(query.x("n")))
            rates = (cores * self.definition.core_peak, self.definition.local.b_comm_seq)
            return answer_matrices(unit, effects, query, rates, factors)
        record = answer_messages(unit, effects, query, idle.latency_alone, factors)
        return record if "program" in fields else _with_polls(record, query, factors)

    def far(self, core: int) -> bool:
        """Whether a core is of another socket than the NIC."""
        return self._socket[core] != self.definition.shape.socket(self.definition.nic_node)

    def _processes(self, fields: Mapping[str, Any]) -> list[tuple[Work, Exchange]]:
        """What each process of the first host or, where every rank is told its place, of all hosts does."""
        places = fields.get("placements") or [fields] * (HOSTS if fields["computing_ranks"] == "all" else 1)
        share = HOSTS / len(places) if fields.get("placements") else 1.0
        return [
            (
                Work(
                    kernel=fields["kernel"],
                    cursor=fields["cursor"],
                    cores=self._by_socket(place["comp_cores"]),
                    comp_node=self._node[place["comp_node"]],
                ),
                Exchange(
                    size=fields["size"],
                    comm_node=self._node[place["comm_node"]],
                    pattern=fields["pattern"],
                    threads=len(place["comm_cores"]),
                    share=min(1.0, share),
                    far=self.far(place["comm_cores"][0]),
                ),
            )
            for place in places
        ]

    def _by_socket(self, cores: Sequence[int]) -> tuple[int, ...]:
        """How many of these cores each socket has."""
        counts = Counter(self._socket[core] for core in cores)
        return tuple(counts[socket] for socket in range(self.definition.sockets))

    def exact(self, work: Work, messages: Exchange) -> ProcessRates:
        """Both sides alone and together, without noise; UsageError where the truth says nothing of it."""
        return self._host(((work, messages),))[0]

    def _every(self, fields: Mapping[str, Any]) -> list[ProcessRates]:
        """What each process gets beside those of its host: a host's ranks follow one another."""
        processes = self._processes(fields)
        each = max(1, len(processes) // HOSTS) if fields.get("placements") else 1
        shared = [tuple(processes[first : first + each]) for first in range(0, len(processes), each)]
        return [answer for host in shared for answer in self._host(host)]

    def _host(self, host: tuple[hosts.Process, ...]) -> tuple[ProcessRates, ...]:
        if host not in self._answers:
            self._answers[host] = (
                hosts.answers(self.truth, self.definition, host)
                if isinstance(self.truth, Credits | Requests)
                else tuple(answer(self.truth, self.definition, *process) for process in host)
            )
        return self._answers[host]

    def start_factors(self, start: Unit | None, name: str) -> tuple[float, float]:
        """What the values of both sides are multiplied by in all repetitions of a start; `name` tells those
        of one point and phase.
        """
        spread = self.definition.between_starts
        if start is None or spread is msgspec.UNSET or not spread:
            return 1.0, 1.0
        keys = (zlib.crc32(text.encode()) for text in (self.definition.name, name, "start"))
        rng = np.random.default_rng([self.seed, *keys, start.repetition, start.closing])
        comp, comm = np.exp(spread * rng.standard_normal(2)).tolist()
        return comp, comm

    def factors(self, unit: Unit, shape: tuple[int, ...], *names: str) -> NDArray[np.float64]:
        """Normal factors of mean 1: the same for the same seed, machine, unit and names, in whatever order
        units are asked for.
        """
        keys = (zlib.crc32(text.encode()) for text in (self.definition.name, unit.point, *names))
        rng = np.random.default_rng([self.seed, *keys, unit.repetition, unit.closing])
        factors = rng.normal(1.0, self.noise, shape)
        while (factors <= 0).any():
            factors = np.where(factors > 0, factors, rng.normal(1.0, self.noise, shape))
        return factors

    def _factors(self, unit: Unit, shape: tuple[int, int, int]) -> list[list[list[float]]]:
        """By phase, process and side."""
        table: list[list[list[float]]] = self.factors(unit, shape).tolist()
        return table


def scaled_rates(exact: ProcessRates, effect: Effect) -> ProcessRates:
    """Both sides together times the factors of an effect."""
    comm, comp = effect.comm_factor or 1.0, effect.comp_factor or 1.0
    return msgspec.structs.replace(
        exact,
        comm_together=exact.comm_together * comm,
        latency_together=exact.latency_together / comm,
        comp_together=None if exact.comp_together is None else exact.comp_together * comp,
    )


POLL_NS, NOP_NS = 20.0, 0.4
"""What a poll and a nop take a worker that has its list for itself, about."""


def _with_polls(
    record: dict[str, Any], query: EffectQuery, factors: list[list[list[float]]]
) -> dict[str, Any]:
    """Phases of a pool's workers with what they poll."""
    kernel = find(query.name)
    assert kernel is not None
    each = 1e3 / (POLL_NS + NOP_NS * query.x("cursor")) if kernel.uses_cursor else 2e-4
    phases = []
    for index, phase in enumerate(record["phases"]):
        rate = each * query.x("n") * factors[index][0][0]
        comp = {"rate": rate, "unit": kernel.rate_unit, "batches": [rate]}
        sides = {} if phase["phase"] == "B" else {"comp": comp}
        comm = {} if phase["phase"] == "A" else {"comm": phase["comm"]}
        phases.append({**{key: item for key, item in phase.items() if key != "comm"}, **sides, **comm})
    return {**record, "phases": phases}


def _sides(
    phase: str, exact: list[ProcessRates], factors: list[list[float]], kernel: Kernel | None, metric: str
) -> dict[str, Any]:
    """`comp` and `comm` of a phase: those of rank 0, and of all ranks where others compute too."""
    ranks = []
    for rank, (one, (comp_factor, comm_factor)) in enumerate(zip(exact, factors, strict=True)):
        sides: dict[str, Any] = {}
        comp = {"A": one.comp_alone, "AB": one.comp_together}.get(phase)
        if comp is not None and kernel is not None:
            rate = comp * comp_factor
            sides["comp"] = {"rate": rate, "unit": kernel.rate_unit, "batches": [rate]}
        if phase in ("B", "AB"):
            together = phase == "AB"
            if metric == "latency":
                value = (one.latency_together if together else one.latency_alone) * comm_factor
            else:
                value = (one.comm_together if together else one.comm_alone) * comm_factor
            unit = "us" if metric == "latency" else "MB/s"
            sides["comm"] = {"value": value, "unit": unit, "batches": [value]}
        ranks.append({"rank": rank, **sides})
    first = {name: value for name, value in ranks[0].items() if name != "rank"}
    return {**first, "ranks": ranks} if len(ranks) > 1 else first


def _first_request(point: Point) -> dict[str, object]:
    """What a probe is sent for the first repetition."""
    return point.workload.request(point, Unit(point=point.id, repetition=0), Steady())
