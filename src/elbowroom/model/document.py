"""M.json as data: what was calibrated on what, every model side by side, and where not to trust them.

Flat on purpose: the C library and the page's JavaScript evaluate the models from it (docs/model-file.md,
schemas/model-1.json). Bandwidths are MB/s (1e6 B/s), sizes bytes, nodes as in Shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from elbowroom.model.curves import Shape
from elbowroom.model.load import Question
from elbowroom.model.message_size import MessageSize
from elbowroom.model.prediction import Interval
from elbowroom.model.threshold import Parameters, Threshold

if TYPE_CHECKING:
    from elbowroom.model.flow_fit import FlowFit, FlowParameter

SCHEMA = "elbowroom/model"
VERSION = 1

ModelName = Literal["threshold", "robust", "flow"]
MODELS: tuple[ModelName, ...] = ("flow", "robust", "threshold")
"""Best first: `flow` has intervals of its own, `threshold` is calibrated as the thesis does."""

Origin = Literal["measured", "virtual", "imported", "published"]

LEVEL = 0.90
"""Coverage of every interval in the file and in predictions."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What the models were fitted on. `n_low`..`n_high`: computing cores of the first socket that were
    measured; `n_other_high`: most of the second; `placements`: pairs of comp_node, comm_node; `runs`: rows
    used; `left_out`: points that were not, by reason; `nodes`: the operating system's number of each;
    `pattern`: how messages were exchanged; `with_runs`: further runs, fitted together with `run`.
    """

    run: str
    plan: str
    origin: Origin
    kernel: str
    size: int
    runs: int
    n_low: int
    n_high: int
    n_other_high: int = 0
    placements: tuple[tuple[int, int], ...] = ()
    nodes: tuple[int, ...] = ()
    left_out: dict[str, int] = {}
    pattern: str = "receive"
    with_runs: tuple[str, ...] = ()


Bands = tuple[float, float, float, float]
"""For each of STREAMS, in that order, the relative half-width of the 90 % interval of a prediction."""


class ThresholdPart(msgspec.Struct, frozen=True, kw_only=True):
    """The thesis' model: parameters for data local and remote to the computing cores; None: not measured.

    `intervals`: 90 % interval of each parameter by side and name, empty for a calibration that has none;
    `bands`: by `local` and `remote` (data of both on the node that was sampled) and `other` placements;
    `bands_from`: where those come from.
    """

    local: Parameters | None
    remote: Parameters | None
    intervals: dict[str, dict[str, Interval]] = {}
    bands: dict[str, Bands] = {}
    bands_from: str = ""
    flags: tuple[str, ...] = ()

    def model(self, shape: Shape) -> Threshold:
        """The model that predicts."""
        return Threshold(shape=shape, local=self.local, remote=self.remote)


class LoadPart(msgspec.Struct, frozen=True, kw_only=True):
    """What FLOW knows beyond situations (model/flow_load.py): `names`, `values`, `low`, `high`, `draws` and
    `discrepancy` as in FlowPart, each draw together with FLOW's of the same row.

    `measured`: what the runs tell of; `switches`: first sizes (bytes) of every regime of messages but the
    first; `intensity` (flop/B): that of the calibrated kernel; `intensity_high`, `size_low`, `size_high`:
    where the runs end; `runs`: rows used.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    draws: tuple[tuple[float, ...], ...] = ()
    discrepancy: Bands = (0.0, 0.0, 0.0, 0.0)
    measured: tuple[Question, ...] = ()
    switches: tuple[int, ...] = ()
    intensity: float = 0.0
    intensity_high: float = 0.0
    size_low: int = 0
    size_high: int = 0
    runs: int = 0
    flags: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[FlowParameter, ...]:
        """The parameters with interval, unit and meaning."""
        from elbowroom.model.flow_extras import meaning
        from elbowroom.model.flow_fit import FlowParameter

        rows = zip(self.names, self.values, self.low, self.high, strict=True)
        return tuple(
            FlowParameter(
                name=name,
                value=value,
                low=low,
                high=high,
                unit=meaning(name, self.switches).unit,
                text=meaning(name, self.switches).text,
            )
            for name, value, low, high in rows
        )


class FlowPart(msgspec.Struct, frozen=True, kw_only=True):
    """FLOW: `names` of its parameters in order, `values` the best fit, `low` and `high` their 90 % intervals,
    `draws` sets of parameters from their joint distribution (rows as `names`), `discrepancy` the relative
    standard deviation of what the model cannot follow, for each of STREAMS; `load`: the same of what it knows
    beyond situations, None where only situations were measured.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    draws: tuple[tuple[float, ...], ...] = ()
    discrepancy: Bands = (0.0, 0.0, 0.0, 0.0)
    flags: tuple[str, ...] = ()
    load: LoadPart | None = None

    def fit(self, shape: Shape) -> FlowFit:
        """The model that predicts."""
        from elbowroom.model.flow_fit import FlowFit

        return FlowFit(
            shape=shape,
            names=self.names,
            values=self.values,
            low=self.low,
            high=self.high,
            draws=self.draws,
            discrepancy=self.discrepancy,
            flags=self.flags,
        )


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """Every model that could be fitted: `threshold` as the thesis calibrates, `robust` against noise."""

    threshold: ThresholdPart | None = None
    robust: ThresholdPart | None = None
    flow: FlowPart | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The file M.json. `validity`: where not to trust the models, one sentence each; `message_size`: what
    messages of other sizes than the calibrated one ask for, None where too few sizes were measured.
    """

    schema: str = SCHEMA
    version: int = VERSION
    elbowroom: str
    created: str
    machine: Shape
    calibration: Calibration
    models: Models
    validity: tuple[str, ...] = ()
    message_size: MessageSize | None = None

    def names(self) -> tuple[ModelName, ...]:
        """The models it holds, best first."""
        return tuple(name for name in MODELS if getattr(self.models, name) is not None)
