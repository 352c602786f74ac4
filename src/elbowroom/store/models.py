"""M.json on the disk: written whole or not at all, read with sentences for what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from elbowroom.documents import DocumentFormat
from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape
from elbowroom.models.document import SCHEMA, VERSION, Document
from elbowroom.models.flow.extras import NEUTRAL, regime_names
from elbowroom.models.flow.law import PARAMETERS
from elbowroom.models.flow.part import FlowPart, LoadPart
from elbowroom.models.flow.prior import LINEAR
from elbowroom.models.gpu.case import check_case
from elbowroom.models.gpu.law import PARAMETERS as GPU_PARAMETERS
from elbowroom.models.gpu.part import GpuPart
from elbowroom.models.threshold.law import Parameters, ThresholdPart
from elbowroom.store.curves import MOST

MOST_KEPT = 1e3
"""Nothing measured gains more."""

MOST_DISCREPANCY = 10.0
"""A model that is off by more follows nothing, and its intervals overflow."""

LINK_NAME = r"link_(h2d|d2h|both)_(-1|[0-9]{1,6})"

_HINT = "fit it again: elbowroom fit RUN -o M.json"


MODEL_FORMAT = DocumentFormat(kind=Document, schema=SCHEMA, version=VERSION, name="model", hint=_HINT)


def write_model(path: Path, document: Document) -> None:
    """Writes the file; MachineError when the disk refuses."""
    MODEL_FORMAT.write(path, document)


def read_model(path: Path) -> Document:
    """The document; UsageError names the file, the line or the field, and a hint.

    Fields that this release does not know are passed over; a newer version is refused.
    """
    document = MODEL_FORMAT.read(path)
    _check(path, document)
    return document


def _check(path: Path, document: Document) -> None:
    """What types cannot say: positive counts and bandwidths, rows as long as the names of their columns."""
    _check_shape(path, document.machine)
    for name in ("threshold", "robust"):
        part: ThresholdPart | None = getattr(document.models, name)
        for side in ("local", "remote"):
            parameters: Parameters | None = getattr(part, side) if part is not None else None
            if parameters is not None:
                _check_parameters(path, f"models.{name}.{side}", parameters)
    if document.models.flow is not None:
        _check_flow(path, document.models.flow)
    if document.gpu is not None:
        _check_gpu(path, document.gpu)


def _check_shape(path: Path, shape: Shape) -> None:
    for field in ("cores_first_socket", "numa_per_socket", "sockets"):
        _at_least(path, f"machine.{field}", getattr(shape, field), 1)
        if getattr(shape, field) > MOST:
            raise _wrong(path, f"machine.{field}", getattr(shape, field), "is more than any machine has")
    if shape.nic_node is not None and not 0 <= shape.nic_node < shape.nodes:
        message = f"the machine has {shape.nodes} NUMA nodes, counted from 0"
        raise _wrong(path, "machine.nic_node", shape.nic_node, message)


def _check_parameters(path: Path, where: str, parameters: Parameters) -> None:
    for field in ("n_par_max", "n_seq_max"):
        _at_least(path, f"{where}.{field}", getattr(parameters, field), 1)
    _at_least(path, f"{where}.alpha", parameters.alpha, 0)
    for field in ("t_par_max", "t_seq_max", "t_par_max2", "b_comp_seq", "b_comm_seq"):
        if getattr(parameters, field) <= 0:
            raise _wrong(path, f"{where}.{field}", getattr(parameters, field), "a bandwidth is above 0")


def _check_flow(path: Path, flow: FlowPart) -> None:
    if not flow.draws:
        raise _wrong(path, "models.flow.draws", None, "holds no set of parameters")
    above_zero = {item.name for item in PARAMETERS if item.unit == "MB/s" or "cost" in item.name}
    _check_rows(path, "models.flow", flow, above_zero)
    if flow.load is not None:
        _check_load(path, flow.load, len(flow.draws))


def _check_gpu(path: Path, part: GpuPart) -> None:
    """An accelerator: a row of draws at least, every parameter of the law, words and sizes of cases."""
    _at_least(path, "gpu.sms", part.sms, 2)
    if part.sms > MOST:
        raise _wrong(path, "gpu.sms", part.sms, "is more than any accelerator has")
    if not part.draws:
        raise _wrong(path, "gpu.draws", None, "holds no set of parameters")
    own = {item.name for item in GPU_PARAMETERS}
    missing = own - set(part.names)
    if missing:
        raise _wrong(path, "gpu.names", None, f"lacks {', '.join(sorted(missing))}")
    for name in part.names:
        if name not in own and not re.fullmatch(LINK_NAME, name):
            raise _wrong(path, "gpu.names", name, "is not a parameter of this release")
    _check_columns(path, "gpu", part, set(part.names) - set(LINEAR))
    spreads = [("gpu.mover_discrepancy", part.mover_discrepancy)]
    spreads += [(f"gpu.errors[{at}].discrepancy", item.discrepancy) for at, item in enumerate(part.errors)]
    for field, value in spreads:
        if value is not None and not 0 <= value <= MOST_DISCREPANCY:
            raise _wrong(path, field, value, "is not a relative standard deviation")
    for number, victim in enumerate(part.victims):
        _at_least(path, f"gpu.victims[{number}].traffic", victim.traffic, 0)
        for field, length in (("shape", 3), ("tile", 2)):
            values = getattr(victim, field)
            if values and (len(values) != length or min(values) < 1):
                raise _wrong(path, f"gpu.victims[{number}].{field}", None, f"is not {length} positive sizes")
    for number, item in enumerate(part.measured):
        where = f"gpu.measured[{number}]"
        if not (0 < item.kept <= MOST_KEPT and 0 <= item.spread <= MOST_DISCREPANCY):
            raise _wrong(path, f"{where}.kept", item.kept, "is not a positive share with a standard error")
        try:
            check_case(item.case, part.sms)
        except UsageError as error:
            raise _wrong(path, f"{where}.case.{error.field}", error.value, error.message) from error
    known = {errors.family for errors in part.errors}
    for item in part.measured:
        if item.case.mover and item.case.family not in known:
            raise _wrong(path, "gpu.errors", item.case.family, "lacks this family")


def _check_load(path: Path, load: LoadPart, draws: int) -> None:
    where = "models.flow.load"
    known = {*NEUTRAL, *regime_names(len(load.switches) + 1)}
    for name in load.names:
        if name not in known:
            raise _wrong(path, f"{where}.names", name, "is not a parameter of this release")
    if "sizes" in load.measured and not {name for name in load.names if name.startswith("latency_")} >= {
        f"latency_{regime}" for regime in range(len(load.switches) + 1)
    }:
        raise _wrong(path, f"{where}.names", None, "hold no latency for each regime of sizes")
    if len(load.draws) != draws:
        message = f"{len(load.draws)} sets of parameters beside {draws} of FLOW's"
        raise _wrong(path, f"{where}.draws", None, message)
    if list(load.switches) != sorted({size for size in load.switches if size > 0}):
        raise _wrong(path, f"{where}.switches", None, "must be positive sizes in rising order")
    _check_rows(path, where, load, known - set(LINEAR))


def _check_rows(path: Path, where: str, part: FlowPart | LoadPart, above_zero: set[str]) -> None:
    bands = {"discrepancy": part.discrepancy}
    if isinstance(part, FlowPart) and part.discrepancies is not None:
        sides = msgspec.structs.asdict(part.discrepancies)
        bands |= {f"discrepancies.{side}": values for side, values in sides.items()}
    for name, values in bands.items():
        for index, value in enumerate(values):
            if not 0 <= value <= MOST_DISCREPANCY:
                raise _wrong(path, f"{where}.{name}[{index}]", value, "is not a relative standard deviation")
    _check_columns(path, where, part, above_zero)


def _check_columns(path: Path, where: str, part: FlowPart | LoadPart | GpuPart, above_zero: set[str]) -> None:
    rows = [("values", part.values), ("low", part.low), ("high", part.high)]
    rows += [(f"draws[{number}]", draw) for number, draw in enumerate(part.draws)]
    for field, row in rows:
        if len(row) != len(part.names):
            message = f"{len(row)} numbers for {len(part.names)} parameters"
            raise _wrong(path, f"{where}.{field}", None, message)
        for name, value in zip(part.names, row, strict=True):
            if name in above_zero and value <= 0:
                raise _wrong(path, f"{where}.{field}", value, f"{name} must be positive")


def _at_least(path: Path, field: str, value: float, least: int) -> None:
    if value < least:
        raise _wrong(path, field, value, f"is below {least}")


def _wrong(path: Path, field: str, value: object, message: str) -> UsageError:
    return UsageError(f"{path}: {message}", field=field, value=value, hint=_HINT)
