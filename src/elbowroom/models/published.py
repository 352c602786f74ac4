"""The nine machines of the thesis (Swartvagher 2022): appendix C, appendix E, Table 6.1; and each as a
document with intervals.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

import msgspec

from elbowroom.documents import TomlFormat
from elbowroom.errors import UsageError, closest
from elbowroom.files import data_folder
from elbowroom.models.curves import Shape
from elbowroom.models.document import Calibration, Document, Models
from elbowroom.models.load import NORMAL_90
from elbowroom.models.threshold.law import Parameters, Threshold, ThresholdPart
from elbowroom.version import __version__

FOLDER = data_folder("machines") / "published"
Where = Literal["local", "remote"]


class Correction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A misprint: what the table says, what is used, and why."""

    placement: Where
    parameter: str
    printed: float
    used: float
    reason: str


class PublishedErrors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mean absolute percentage errors on sample, other and all placements (Table 6.1)."""

    samples: float
    non_samples: float
    all: float


class MachineErrors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of Table 6.1, in percent."""

    comm: PublishedErrors
    comp: PublishedErrors
    average: float


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine as the thesis describes it; `local` and `remote` as printed, see `model` for what is used.

    `figure`: where the thesis draws it; `table`: where its parameters are; `memory_gb` in GB of the machine.
    """

    name: str
    platform: str
    processor: str
    cores: int
    sockets: int
    cores_first_socket: int
    numa_per_socket: int
    memory_gb: int
    network: str
    hyperthreading: bool
    nic_node: int
    nic_node_source: str
    figure: str
    table: str
    local: Parameters
    remote: Parameters
    errors: MachineErrors
    notes: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def shape(self) -> Shape:
        """What models know of its topology."""
        return Shape(
            name=self.name,
            cores_first_socket=self.cores_first_socket,
            numa_per_socket=self.numa_per_socket,
            sockets=self.sockets,
            nic_node=self.nic_node,
        )

    @property
    def model(self) -> Threshold:
        """The published model, misprints corrected."""
        return Threshold(shape=self.shape, local=self.used("local"), remote=self.used("remote"))

    def used(self, where: Where) -> Parameters:
        """The parameters of one side with its misprints corrected."""
        parameters: Parameters = getattr(self, where)
        for item in self.corrections:
            if item.placement == where:
                kind = type(getattr(parameters, item.parameter))
                parameters = msgspec.structs.replace(parameters, **{item.parameter: kind(item.used)})
        return parameters


@cache
def names() -> tuple[str, ...]:
    """The published machines, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def load(name: str) -> Published:
    """The machine of that name; UsageError for any other."""
    if name not in names():
        raise UsageError(
            "is not a published machine", field="machine", value=name, hint=closest(name, names())
        )
    return decode((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


PUBLISHED = TomlFormat(kind=Published, field="machine", page="machines/published")


def decode(text: str) -> Published:
    """A published machine from TOML; UsageError when its parameters contradict one another."""
    where = "a published machine"
    machine = PUBLISHED.decode(text, where)
    for where, parameters in (("local", machine.used("local")), ("remote", machine.used("remote"))):
        check(parameters, f"{machine.name}.{where}")
    return machine


def check(parameters: Parameters, where: str) -> None:
    """Refuses parameters that break what holds of all published ones: N_par <= N_seq, and delta_l as the
    slope between the two peaks, to the last digit printed (bandwidths are given to 0.1 MB/s).
    """
    p = parameters
    between = p.n_seq_max - p.n_par_max
    if between < 0:
        raise UsageError(
            f"is above n_seq_max = {p.n_seq_max}",
            field=f"{where}.n_par_max",
            value=p.n_par_max,
            hint="correct the misprint",
        )
    slope = (p.t_par_max - p.t_par_max2) / between if between else 0.0
    rounding = 0.05 + 0.1 / max(between, 1) + 1e-9
    if abs(slope - p.delta_l) > rounding:
        raise UsageError(
            f"is not (t_par_max - t_par_max2) / (n_seq_max - n_par_max) = {slope:.1f}",
            field=f"{where}.delta_l",
            value=p.delta_l,
            hint="correct the misprint",
        )


FROM_TABLE = "published mean error"


def of_published(name: str) -> Document:
    """A machine of the thesis as a document: appendix E's parameters, intervals from Table 6.1.

    Errors are taken as normal, so that a mean error e means a half-width of 1.645 sqrt(pi / 2) e.
    """
    machine = load(name)
    model = machine.model

    def width(percent: float) -> float:
        return NORMAL_90 * math.sqrt(math.pi / 2) * percent / 100

    comp, comm = machine.errors.comp, machine.errors.comm
    sample, other = (
        (width(on_comp), width(on_comm), width(on_comp), width(on_comm))
        for on_comp, on_comm in ((comp.samples, comm.samples), (comp.non_samples, comm.non_samples))
    )
    nodes = range(machine.shape.nodes)
    calibration = Calibration(
        run=f"thesis of P. Swartvagher (2022), Table {machine.table}",
        plan="",
        origin="published",
        kernel="memset_nt",
        size=64_000_000,
        runs=0,
        n_low=1,
        n_high=machine.cores_first_socket,
        placements=tuple((i, j) for i in nodes for j in nodes),
    )
    part = ThresholdPart(
        local=model.local,
        remote=model.remote,
        bands={"local": sample, "remote": sample, "other": other},
        bands_from=FROM_TABLE,
    )
    corrections = [
        f"{item.placement} {item.parameter} is {item.used:g}, not {item.printed:g} as printed: {item.reason}"
        for item in machine.corrections
    ]
    return Document(
        elbowroom=__version__,
        created="",
        machine=machine.shape,
        calibration=calibration,
        models=Models(threshold=part),
        validity=(calibration.benchmark, *machine.notes, *corrections),
    )
