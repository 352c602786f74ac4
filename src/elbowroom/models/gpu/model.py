"""The accelerator's model: what both sides keep in a case, with 90 % intervals.

The penalty table: how much longer kernels and copies take beside each other, for schedulers that overlap
them.

A compiler that decides which kernel runs beside which transfer needs both factors for each pair, not a
model: the table lists them for the measured families, for numbers of SMs inside what was measured
(docs/reference/gpu-models.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.flow.law import Array
from elbowroom.models.gpu.case import COUNTS, LINKS, ON_DEVICE, SMS_OF, DeviceCase, check_case, ordered
from elbowroom.models.gpu.law import arrays, link_name, rates
from elbowroom.models.gpu.part import FamilyErrors, GpuPart, GpuVictim, MeasuredCase
from elbowroom.models.load import NORMAL_90
from elbowroom.stats.interval import Interval, around
from elbowroom.version import __version__

EXTRAPOLATED, VIRTUAL, MEASURED = "extrapolated", "virtual", "measured"


class GpuPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """One case: what the victim keeps and its rate (`unit`) together; the mover's rates (MB/s) and what it
    keeps, None where nothing moves. 90 % intervals. `flags`: `measured` where the case itself was (`kept`
    then is the measured value), `extrapolated`, `virtual`, `... not measured`.
    """

    case: DeviceCase
    kept: Interval
    rate: Interval
    unit: str
    mover_alone: Interval | None = None
    mover_together: Interval | None = None
    mover_kept: Interval | None = None
    flags: tuple[str, ...] = ()


class GpuDraws(msgspec.Struct, frozen=True, kw_only=True):
    """(1 + D, N): the best fit, then draws, in which the model's own error is drawn too: what the victim
    keeps, and the mover's rates (MB/s, 0 where nothing moves).
    """

    kept: Array
    mover_alone: Array
    mover_together: Array


class GpuModel:
    """The model of an accelerator's part, made once and asked often."""

    def __init__(self, part: GpuPart) -> None:
        self.part = part

    @cached_property
    def _measured(self) -> dict[DeviceCase, MeasuredCase]:
        return {item.case: item for item in self.part.measured}

    @cached_property
    def _families(self) -> dict[str, FamilyErrors]:
        return {item.family: item for item in self.part.errors}

    def victim(self, case: DeviceCase) -> GpuVictim:
        """The victim of a case; UsageError for one that was not measured. Of a product of another shape the
        largest measured one stands for it.
        """
        kinds = [item for item in self.part.victims if item.victim == case.victim]
        for item in kinds:
            if item.shape == case.shape:
                return item
        if not kinds:
            raise UsageError(
                f"was not measured on {self.part.device or 'the accelerator'}",
                field="victim",
                value=case.victim,
                hint=f"it knows: {', '.join(sorted({item.victim for item in self.part.victims}))}",
            )
        like = max(kinds, key=lambda item: (item.tiles, item.traffic))
        return like if not case.shape else _scaled(like, case.shape)

    def predict(self, cases: Sequence[DeviceCase], *, law: bool = False) -> list[GpuPrediction]:
        """One prediction for each case, in order; UsageError for what the accelerator cannot have, and for
        victims and links that were not measured. `law`: by the law also where the case was measured.
        """
        cases = [self.resolved(case) for case in cases]
        victims, values = self._rates(cases)
        return [
            self._prediction(
                case,
                victims[place],
                [table[:, place] for table in values],
                None if law else self._measured.get(case),
            )
            for place, case in enumerate(cases)
        ]

    def draws(self, cases: Sequence[DeviceCase], *, seed: int = 0) -> GpuDraws:
        """The best fit and draws of all cases; half of an error of the model is that of all cases of a
        family, so that comparisons inside a family are not blurred by what moves all of it.
        """
        cases = [self.resolved(case) for case in cases]
        _, values = self._rates(cases)
        rng = np.random.default_rng(seed)
        count = len(self.part.draws)
        common = {name: rng.standard_normal(count) for name in sorted({case.family for case in cases})}
        kept = values[0].copy()
        for place, case in enumerate(cases):
            known = self._measured.get(case)
            if known is not None:
                kept[0, place] = known.kept
                kept[1:, place] = known.kept * np.exp(known.spread * rng.standard_normal(count))
            else:
                own = rng.standard_normal(count)
                noise = np.sqrt(0.5) * (common[case.family] + own) * self._discrepancy(case)
                kept[1:, place] = kept[1:, place] * np.exp(noise)
        return GpuDraws(kept=kept, mover_alone=values[1], mover_together=values[2])

    def _rates(self, cases: Sequence[DeviceCase]) -> tuple[list[GpuVictim], tuple[Array, Array, Array]]:
        victims = [self.victim(case) for case in cases]
        at = arrays(
            self.part.sms,
            cases,
            [float(item.tiles) for item in victims],
            [item.traffic for item in victims],
        )
        got = rates(self.part.vectors, at)
        return victims, (got.kept, got.mover_alone, got.mover_together)

    def resolved(self, case: DeviceCase) -> DeviceCase:
        """The case as it was measured, where it leaves open what only one value is known of: the shape of a
        product, the node of a link. UsageError for what the accelerator cannot have, and for victims and
        links that were not measured.
        """
        self._check(case)
        shapes = [item.shape for item in self.part.victims if item.victim == case.victim]
        nodes = self.nodes(case.direction)
        changes: dict[str, Any] = {}
        if not case.shape and len(shapes) == 1:
            changes["shape"] = shapes[0]
        if case.mover == "copy" and case.node == -1 and len(nodes) == 1:
            changes["node"] = nodes[0]
        whole = ordered(msgspec.structs.replace(case, **changes))
        self.victim(whole)
        return whole

    def nodes(self, direction: str) -> tuple[int, ...]:
        """NUMA nodes of pinned buffers whose copies of that direction were measured; -1: not known which."""
        before = f"link_{direction}_"
        return tuple(int(name[len(before) :]) for name in self.part.names if name.startswith(before))

    def link(self, direction: str, node: int) -> Interval:
        """MB/s of copies of that direction alone, with a buffer on that node, which `nodes` has."""
        return _interval(self.part.vectors[link_name(direction, node)][:, 0], self.part.mover_discrepancy)

    def _check(self, case: DeviceCase) -> None:
        check_case(case, self.part.sms)
        if case.victim not in ON_DEVICE:
            raise UsageError(
                "does not compute on the accelerator", field="victim", value=case.victim,
                hint="cores beside copies are a load: --cores N --comp-node NODE --copy RATE@NODE",
            )  # fmt: skip
        if case.mover == "copy" and case.direction in LINKS:
            nodes = self.nodes(case.direction)
            if case.node not in nodes and not (len(nodes) == 1 and case.node == -1):
                known = ", ".join(str(node) for node in nodes if node >= 0)
                raise UsageError(
                    f"copies {case.direction} were not measured with a buffer there",
                    field="node", value=case.node if case.node >= 0 else None,
                    hint=f"measured nodes: {known}" if known else "measure with: elbowroom run gpu",
                )  # fmt: skip

    def _discrepancy(self, case: DeviceCase) -> float:
        family = self._families.get(case.family)
        if family is not None:
            return family.discrepancy
        alike = [item for item in self.part.errors if item.family.split("/")[1:2] == [case.mover]]
        return max((item.discrepancy for item in alike or self.part.errors), default=0.3)

    def _prediction(
        self, case: DeviceCase, victim: GpuVictim, values: Sequence[Array], known: MeasuredCase | None
    ) -> GpuPrediction:
        kept, alone, together = values
        own = _interval(kept, self._discrepancy(case)) if case.mover else around(1.0, 1.0)
        if known is not None and case.mover:
            own = around(known.kept, float(np.exp(NORMAL_90 * known.spread)))
        moves = bool(alone[0] > 0)
        unlike = self.part.mover_discrepancy
        return GpuPrediction(
            case=case,
            kept=own,
            rate=Interval(
                value=own.value * victim.alone, low=own.low * victim.alone, high=own.high * victim.alone
            ),
            unit=victim.unit,
            mover_alone=_interval(alone, unlike) if moves else None,
            mover_together=_interval(together, unlike) if moves else None,
            mover_kept=_interval(together / alone, 0.0) if moves else None,
            flags=self._flags(case, known is not None),
        )

    def _flags(self, case: DeviceCase, known: bool) -> tuple[str, ...]:
        family = self._families.get(case.family)
        flags = [MEASURED] if known else []
        if case.mover and family is None:
            flags.append(f"{case.family} not measured")
        elif family is not None and case.mover in SMS_OF and not known:
            inside = family.sms_low <= case.sms <= family.sms_high
            flags += [] if inside else [EXTRAPOLATED]
        if case.shape and not any(item.shape == case.shape for item in self.part.victims):
            flags.append("shape not measured")
        if case.first == "victim" and "late" in self.part.unknown and case.sms and not case.planned:
            flags.append("victim first not measured")
        if self.part.origin == "virtual":
            flags.append(VIRTUAL)
        return tuple(flags)


def _scaled(like: GpuVictim, shape: tuple[int, ...]) -> GpuVictim:
    """A product of another shape: its own tiles of the same size, and traffic for its arithmetic."""
    tiles = -(-shape[0] // like.tile[0]) * -(-shape[1] // like.tile[1]) if like.tile else 0
    traffic = like.traffic * _per_flop(shape) / _per_flop(like.shape) if like.shape else 0.0
    return msgspec.structs.replace(like, shape=shape, tiles=tiles, traffic=traffic)


def _per_flop(shape: tuple[int, ...]) -> float:
    m, n, k = shape
    return (m * k + k * n + m * n) / (m * n * k)


def _interval(values: Array, discrepancy: float) -> Interval:
    """Of the best fit and draws, (1 + D,)."""
    logs = np.log(np.maximum(values[1:], 1e-9))
    variance = float(logs.var()) if len(logs) else 0.0
    return around(float(values[0]), float(np.exp(NORMAL_90 * np.sqrt(variance + discrepancy**2))))


SCHEMA = "elbowroom/gpu-penalties"


class Penalty(msgspec.Struct, frozen=True, kw_only=True):
    """One pair. `victim_slowdown`, `mover_slowdown`: how many times as long each takes as alone, with 90 %
    intervals (1: undisturbed; None of a mover that moves nothing); `mover_mb_s`: its rate alone; `measured`:
    whether the pair itself was, else the model says it; `flags` of the prediction.
    """

    case: DeviceCase
    victim_slowdown: Interval
    mover_slowdown: Interval | None
    mover_mb_s: float | None
    measured: bool
    flags: tuple[str, ...] = ()


class PenaltyTable(msgspec.Struct, frozen=True, kw_only=True):
    """All pairs of one accelerator with `sms` SMs; `origin`: measured by runs, or of a virtual machine."""

    schema: str = SCHEMA
    version: int = 1
    elbowroom: str
    machine: str
    device: str
    sms: int
    origin: str
    penalties: tuple[Penalty, ...]


def penalty_table(part: GpuPart, machine: str) -> PenaltyTable:
    """The table of an accelerator's model; `machine` is its name."""
    model = GpuModel(part)
    predictions = model.predict(list(dict.fromkeys(_cases(part))))
    return PenaltyTable(
        elbowroom=__version__,
        machine=machine,
        device=part.device,
        sms=part.sms,
        origin=part.origin,
        penalties=tuple(_penalty(item) for item in predictions),
    )


def _cases(part: GpuPart) -> Iterator[DeviceCase]:
    """What was measured, and between those numbers of SMs the usual ones."""
    for item in part.measured:
        case = item.case
        if not case.mover:
            continue
        yield case
        family = next(errors for errors in part.errors if errors.family == case.family)
        for count in COUNTS if case.mover in SMS_OF else ():
            if family.sms_low <= count <= family.sms_high:
                yield msgspec.structs.replace(case, sms=count)


def _penalty(item: GpuPrediction) -> Penalty:
    mover = item.mover_kept
    return Penalty(
        case=item.case,
        victim_slowdown=_inverse(item.kept),
        mover_slowdown=None if mover is None else _inverse(mover),
        mover_mb_s=None if item.mover_alone is None else item.mover_alone.value,
        measured=MEASURED in item.flags,
        flags=tuple(flag for flag in item.flags if flag != MEASURED),
    )


def _inverse(kept: Interval) -> Interval:
    return Interval(value=1 / kept.value, low=1 / kept.high, high=1 / kept.low)
