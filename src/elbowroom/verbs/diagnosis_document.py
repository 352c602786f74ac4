"""The document of a diagnosis: what `diagnose --json` prints, and diagnosis.json holds."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from elbowroom import display
from elbowroom.advise.advice import Advice
from elbowroom.advise.verification import Compared
from elbowroom.diagnose.causes import Cause, CauseName
from elbowroom.diagnose.summary import AccountShares, PartRow, PopShares
from elbowroom.diagnose.trials import Tried
from elbowroom.models.demand import Demand
from elbowroom.verbs.calibrate import Origin


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a step of the profiled program does on one node, `node`; trimmed means in s, usual bytes. Where no
    steps are recognised, the whole run is one (`run`). `iterations_per_step`: of the program's own
    iterations; None where that is not known. `waiting_s`: the rest of the step, inside MPI while none of
    these ranks has data on the network; at least that, where computation and messages overlap. `inside`: the
    job has one node, and the messages are those inside it.
    """

    recognised_by: Literal["marks", "pattern", "run"]
    count: int
    iterations_per_step: int | None
    node: str
    ranks: int
    inside: bool
    duration_s: float
    computation_s: float
    network_s: float
    waiting_s: float
    bytes_sent: float
    bytes_received: float
    message_bytes: int | None


class CoreBound(msgspec.Struct, frozen=True, kw_only=True):
    """The best setup if the cores bound the computation, and not memory: it is as many times as fast as there
    are cores, and shares nothing with messages. `changes` of the present setup (none: it is the best);
    `gain`: the share of the present step that this saves.
    """

    changes: dict[str, Any]
    total_s: float
    gain: float


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What `diagnose --json` prints. `exit_code`: of the program, None where only its profile was read;
    `step_s`: the mean step; `account`: its parts as shares of it, `parts` with intervals, ranks and places;
    `causes`: of lost time, the largest first; none where `not_judged` says why; `tried`: changed launch lines
    that were measured.

    `page`: its file. `job`: as in `job_file`, None where the steps send no data; `unknown`: what the
    profile could not tell of it; `model`: None where none existed and none was needed (`missing` says
    why), and then there is no `advice`. It takes the computation to be bound by memory, as the model's
    kernel is, `core_bound` by the cores; `step_error`: predicted / measured present step - 1.
    `hidden_most`: the share of a step that messages hidden behind the computation save at most; None where
    they overlap already. `demand`: what the program loses beside a known load, None where that was not
    measured. `notes`: what to know, and what is partial. `trusted` is false where a measurement of the
    model or of the gain was too noisy.
    """

    schema: str = "elbowroom/diagnosis"
    version: int = 2
    profile: str
    exit_code: int | None = None
    steps: StepFacts
    step_s: float
    account: AccountShares
    parts: tuple[PartRow, ...]
    pop: PopShares
    causes: tuple[Cause, ...]
    not_judged: str = ""
    tried: tuple[Tried, ...] = ()
    job: dict[str, Any] | None
    job_file: str | None = None
    page: str | None = None
    unknown: tuple[str, ...] = ()
    model: str | None = None
    model_origin: Origin | None = None
    advice: Advice | None = None
    core_bound: CoreBound | None = None
    step_error: float | None = None
    hidden_most: float | None = None
    missing: str = ""
    verified: Compared | None = None
    demand: Demand | None = None
    trusted: bool = True
    notes: tuple[str, ...] = ()

    @property
    def first_cause(self) -> CauseName | None:
        """None where none was judged."""
        return self.causes[0].cause if self.causes else None

    def __repr__(self) -> str:
        return f"Diagnosis(profile={self.profile!r}, cause={self.first_cause!r})"

    __str__, _repr_html_ = display.text, display.html
