"""The accelerator's part of M.json: flat, so that the C library evaluates the same."""

from __future__ import annotations

import msgspec
import numpy as np

from elbowroom.models.flow.law import Array
from elbowroom.models.flow.part import FlowParameter, described
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.law import meaning


class GpuVictim(msgspec.Struct, frozen=True, kw_only=True):
    """What computes: `alone` its rate (`unit`), `tiles` of a product (0: not known, then without waves), of
    `tile` rows and columns, `traffic` MB/s that it moves alone if each array moves once. `alike`: other tiles
    that the samples cannot tell from these.
    """

    victim: str
    shape: tuple[int, ...] = ()
    alone: float
    unit: str
    tiles: int = 0
    tile: tuple[int, ...] = ()
    traffic: float = 0.0
    alike: tuple[tuple[int, int], ...] = ()


class MeasuredCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case of the calibration: what the victim keeps with its relative standard error, the mover's rates
    (MB/s, None where nothing moves), and what the law alone says.
    """

    case: DeviceCase
    kept: float
    spread: float
    mover_alone: float | None = None
    mover_together: float | None = None
    law: float


class FamilyErrors(msgspec.Struct, frozen=True, kw_only=True):
    """How far off predictions of one family's cases are, mean |predicted - measured| / measured of what the
    victim keeps: of the law as fitted, held out (other numbers of SMs, or other cases), and of the rules
    that kept is 1 - k / S, that it is max-min of one memory, and 1 always. `discrepancy`: relative standard
    deviation behind predictions; `better`: whether the law is closer than each rule, held out.
    """

    family: str
    cases: int
    fitted: float
    held_out: float | None
    share_rule: float
    max_min_rule: float
    no_loss_rule: float
    discrepancy: float
    better: bool
    sms_low: int = 0
    sms_high: int = 0


class GpuPart(msgspec.Struct, frozen=True, kw_only=True):
    """The model of one accelerator with `sms` SMs: `names` of its parameters in order, `values` the best fit,
    `low` and `high` their 90 % intervals, `draws` sets from their joint distribution; `unknown`: parameters
    that no sample tells of, which have the prior's values; `mover_discrepancy` as of FamilyErrors, of the
    mover's rates.
    """

    device: str
    sms: int
    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    draws: tuple[tuple[float, ...], ...]
    victims: tuple[GpuVictim, ...]
    measured: tuple[MeasuredCase, ...]
    errors: tuple[FamilyErrors, ...]
    mover_discrepancy: float
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: dict[str, int] = {}
    run: str = ""
    origin: str = "measured"

    @property
    def parameters(self) -> tuple[FlowParameter, ...]:
        return described(self, [meaning(name) for name in self.names])

    @property
    def vectors(self) -> dict[str, Array]:
        """The best fit and the draws of each parameter, (1 + D, 1)."""
        table = np.array([self.values, *self.draws], dtype=float)
        return {name: table[:, [place]] for place, name in enumerate(self.names)}
