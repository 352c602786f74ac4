"""FLOW as the model file has it: parameters, draws from their joint distribution, what it cannot follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.flow.extras import meaning
from elbowroom.models.flow.law import INDEX, NAMES, PARAMETERS, Array, Meaning
from elbowroom.models.load import Bands, Question
from elbowroom.schemas import WRITTEN


class FlowParameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter with its 90 % interval and what it means."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    text: str


class Discrepancies(msgspec.Struct, frozen=True, kw_only=True):
    """Relative standard deviation of what FLOW cannot follow, by stream: where cores of one socket compute on
    data `local` or `remote` to them, and where cores of `both` sockets compute.
    """

    local: Bands
    remote: Bands
    both: Bands


class FittedParameters(msgspec.Struct, frozen=True, kw_only=True):
    """`names` of parameters in order, `values` the best fit, `low` and `high` their 90 % intervals, `draws`
    sets of parameters from their joint distribution (rows as `names`), `discrepancy` the relative standard
    deviation of what the model cannot follow, for each of STREAMS.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    draws: Annotated[tuple[tuple[float, ...], ...], WRITTEN] = ()
    discrepancy: Annotated[Bands, WRITTEN] = (0.0, 0.0, 0.0, 0.0)


class LoadPart(FittedParameters, frozen=True, kw_only=True):
    """What FLOW knows beyond situations (models/flow/loads.py), each draw together with FLOW's of the same
    row.

    `measured`: what the runs tell of; `switches`: first sizes (bytes) of every regime of messages but the
    first; `intensity` (flop/B): that of the calibrated kernel; `intensity_high`, `size_low`, `size_high`:
    where the runs end; `runs`: rows used.
    """

    measured: Annotated[tuple[Question, ...], WRITTEN] = ()
    switches: tuple[int, ...] = ()
    intensity: float = 0.0
    intensity_high: float = 0.0
    size_low: int = 0
    size_high: int = 0
    runs: int = 0
    flags: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[FlowParameter, ...]:
        return described(self, [meaning(name, self.switches) for name in self.names])


class FlowPart(FittedParameters, frozen=True, kw_only=True):
    """FLOW. `discrepancies`: the discrepancy in situations (None, and in older files: everywhere
    `discrepancy`); `load`: what it knows beyond situations, None where only situations were measured.
    """

    discrepancies: Discrepancies | None = None
    flags: tuple[str, ...] = ()
    load: LoadPart | None = None

    @property
    def parameters(self) -> tuple[FlowParameter, ...]:
        return described(self, [PARAMETERS[INDEX[name]] for name in self.names])

    @property
    def vectors(self) -> Array:
        """The best fit and the draws, (1 + D, P), in the order of NAMES; UsageError for a part that was
        fitted with other parameters of FLOW than this release's.
        """
        missing = set(NAMES) ^ set(self.names)
        if missing:
            raise UsageError(
                f"was fitted with other parameters of FLOW ({', '.join(sorted(missing))})",
                field="model",
                value="flow",
                hint="fit it again: elbowroom fit RUN",
            )
        return np.array([self.values, *self.draws])[:, [self.names.index(name) for name in NAMES]]


def described(part: Any, meanings: Sequence[Meaning]) -> tuple[FlowParameter, ...]:
    """The parameters of a part of M.json that has `names`, `values`, `low` and `high`."""
    rows = zip(part.names, part.values, part.low, part.high, meanings, strict=True)
    return tuple(
        FlowParameter(name=name, value=value, low=low, high=high, unit=item.unit, text=item.text)
        for name, value, low, high, item in rows
    )
