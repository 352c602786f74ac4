"""Advice as data: what `--json` prints, `-o` writes and reports draw."""

from __future__ import annotations

from typing import Any

import msgspec

from elbowroom import display
from elbowroom.advise.job import Job, Setup
from elbowroom.documents import DocumentFormat
from elbowroom.models.curves import Shape
from elbowroom.models.load import Load
from elbowroom.stats.interval import Interval

SCHEMA, VERSION = "elbowroom/advice", 1


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a job and its predicted step. `setup.w` is a number, also where the best was asked for.

    Times in s: `separator` before the communication, then `t_comp` (T_M) and `t_comm` (T_N), each alone, with
    the loss ratios `l_comp`, `l_comm` where they overlap, `t_acc` of the accelerators, and what of the
    `collective` is exposed; `total` with its 90 % interval. Bandwidths (MB/s) of the four streams; `flags` of
    the prediction.
    """

    setup: Setup
    load: Load
    separator: float
    t_comp: float
    t_comm: float
    l_comp: float
    l_comm: float
    t_acc: float
    collective: float = 0.0
    total: Interval
    comp_alone: float
    comm_alone: float
    comp_together: float
    comm_together: float
    flags: tuple[str, ...] = ()


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of the setup: what it is `now` and what is `advised` (the same: it stays).

    `alone`: the share of the step's time that changing only this axis saves; `back`: of the advised setup,
    the share that it saves beside the same with this axis as now. Where the axis stays, both are of the best
    other value, `other`. None where that setup does not fit; `goes_with`: axes changed back along with it.
    """

    axis: str
    now: Any
    advised: Any
    significant: bool
    reason: str
    other: Any = None
    alone: Interval | None = None
    back: Interval | None = None
    goes_with: tuple[str, ...] = ()


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What to change, or that nothing surely gains. `gain`: the share of the present step's time saved, with
    its 90 % interval; `significant`: whether that leaves out 0; `considered` setups were compared, `left_out`
    counts the others by reason; `runners_up`: the next best predictions, best first.
    """

    schema: str = SCHEMA
    version: int = VERSION
    elbowroom: str
    model: str
    name: str
    machine: Shape
    job: Job
    now: Configuration
    advised: Configuration
    gain: Interval
    significant: bool
    sentence: str
    choices: tuple[Choice, ...]
    runners_up: tuple[Configuration, ...] = ()
    considered: int
    left_out: dict[str, int] = {}
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Advice(job={self.job.name!r}, machine={self.machine.name!r}, model={self.model!r})"

    __str__, _repr_html_ = display.text, display.html

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The present one, the advised one, and the runners-up."""
        return (self.now, self.advised, *self.runners_up)

    @property
    def changes(self) -> tuple[Choice, ...]:
        """The choices that differ from now."""
        return tuple(choice for choice in self.choices if choice.now != choice.advised)


def _renamed(data: dict[str, Any]) -> dict[str, Any]:
    """Advice with today's keys (docs/design/renamed.md)."""
    choices = data.get("choices")
    for table in (data, *(choices if isinstance(choices, list) else ())):
        if isinstance(table, dict) and "sure" in table:
            table.setdefault("significant", table.pop("sure"))
    return data


ADVICE_FORMAT = DocumentFormat(
    kind=Advice,
    schema=SCHEMA,
    version=VERSION,
    name="advice",
    hint="write it again: elbowroom advise M.json --job JOB.toml -o FILE",
    adapt=_renamed,
)
