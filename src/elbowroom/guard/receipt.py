"""The receipt of a guard: what acting gained, what the guard itself cost, and what was done."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import msgspec

from elbowroom.documents import DocumentFormat
from elbowroom.errors import UsageError
from elbowroom.guard.decision import LeverResult
from elbowroom.guard.experiment import Verdict
from elbowroom.stats.interval import Interval
from elbowroom.version import __version__


class LeverEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a lever: what was requested (`asked`) and what was `got`, measured before it was used, and
    the share of a step that it gains at most by the model of the machine, or why that is `n/a`.
    """

    name: str
    setting: str
    requested: str = msgspec.field(name="asked")
    got: str
    predicted: Interval | str = "n/a"


class ArmEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An arm of an experiment: the share of a step that its last setting saves, None before the first look,
    and the value of each round, ln(step without that setting / step under the arm).
    """

    arm: str
    gain: Interval | None
    rounds: tuple[float, ...]


class NodeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard of a node of the job says, as in its own receipt."""

    host: str
    first_rank: int | None
    ranks: int
    verdict: Verdict
    gain: Interval | None
    chosen: str
    steps: int
    step_seconds: float | None


class WorstStep(msgspec.Struct, frozen=True, kw_only=True):
    """The longest step, and the arm that it had."""

    seconds: float
    arm: str


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a guarded run leaves. `gain`: the share of a step that the setting which pays saves, or the one
    that comes nearest to it; `placebo`: the same of acting without effect, so a negative one is what the
    guard costs; None before the first look. `chosen`: the arm that is kept. `switches`: how often the first
    rank changed arms in `steps` steps of `step_seconds`, which were recognised by `marks` or `calls`.
    `ranks`: those on this `host`, of which `first_rank` has the least number; `acts_elsewhere`: the guard of
    another rank on it acts and has the receipt. `decided_at`: the step from which on a setting was kept;
    `until_round`: blocks of it that are left before the next round, for `--resume`.
    `worst`: the longest step; `held_seconds`: for how long tasks and neighbours were held back, added up;
    `guard_seconds`: processor time of the guard itself while the program ran. `threads`: the chosen number by
    phase. `by_lever`: what each lever gained on top of those before it. `job`: its name by the launcher;
    `nodes`: those of the job, in the receipt of the node of rank 0 where a guard runs on each. `reasons`:
    sentences.
    """

    schema: str = "elbowroom/guard-receipt"
    version: int = 1
    elbowroom: str = __version__
    command: tuple[str, ...]
    verdict: Verdict
    gain: Interval | None
    placebo: Interval | None
    levers: tuple[LeverEntry, ...]
    switches: int
    chosen: str
    decided_at: int | None
    until_round: int = 0
    steps: int
    step_seconds: float | None
    recognised_by: str
    ranks: int
    host: str = msgspec.field(default_factory=socket.gethostname)
    first_rank: int | None = None
    acts_elsewhere: bool = False
    job: str = ""
    nodes: tuple[NodeEntry, ...] = ()
    exit_code: int
    worst: WorstStep | None = None
    held_seconds: float = 0.0
    guard_seconds: float = 0.0
    threads: Mapping[str, int] = {}
    by_lever: tuple[LeverResult, ...] = ()
    arms: tuple[ArmEntry, ...] = ()
    reasons: tuple[str, ...] = ()


RECEIPT: DocumentFormat[Receipt] = DocumentFormat(
    kind=Receipt,
    schema="elbowroom/guard-receipt",
    version=1,
    name="receipt",
    hint="name one that `elbowroom guard --receipt R.json` wrote",
)


def check_same_program(receipt: Receipt, words: tuple[str, ...]) -> None:
    """UsageError where a receipt is of another command."""
    if receipt.command != words:
        raise UsageError(
            "is of another program",
            field="resume",
            value=" ".join(receipt.command),
            hint="resume the receipt of the same command, or leave --resume out",
        )
