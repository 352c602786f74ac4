"""`elbowroom predict`: what a model says of situations, of loads and of cases on an accelerator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from elbowroom.cli.answer import Answer
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import FIGURE
from elbowroom.cli.tables import new_table, print_table
from elbowroom.draw import files
from elbowroom.errors import UsageError
from elbowroom.models.gpu.case import DeviceCase, First, Mover, Victim, parse_shape
from elbowroom.models.gpu.case import Direction as Way
from elbowroom.models.load import (
    Computing,
    Direction,
    Load,
    LoadPrediction,
    Messages,
    Prediction,
    parse_group,
)
from elbowroom.quantities import format_size, number, plural
from elbowroom.verbs import model_tables
from elbowroom.verbs.declaration import Options, Verb, argument, included, option
from elbowroom.verbs.model_tables import print_flags, shape_line, span
from elbowroom.verbs.run_options import MODEL, out_option

if TYPE_CHECKING:
    from elbowroom.models.gpu.model import GpuPrediction
    from elbowroom.verbs.model_file import Model

BEYOND = ("intensity", "direction", "comm_threads", "group", "copy", "load")
"""Options that only a load knows."""

MESSAGES = ("direction", "comm_threads", "size")


class CaseOptions(Options):
    """A case on an accelerator: a kernel and what moves data beside it."""

    gpu: Victim | None = option(
        "Predict this accelerator kernel while --mover moves data.",
        type=click.Choice(["gemm", "triad", "chain"]),
    )
    mover: Mover | None = option(
        "With --gpu: a copy engine, SMs that copy, idle SMs, or SMs left out of the plan.",
        type=click.Choice(["copy", "sm_copy", "sm_idle", "sm_target"]),
    )
    sms: int | None = option("With --gpu: SMs of the mover; default: several.", "K")
    moves: Way | None = option(
        "With --gpu: where the mover moves data.",
        type=click.Choice(["h2d", "d2h", "both", "d2d", "hbm", "host"]),
    )
    pace: float | None = option("With --gpu: highest bandwidth of the mover.", "MB/s")
    buffer_node: int | None = option("With --gpu: NUMA node of the pinned buffer.", "NODE")
    first: First | None = option(
        "With --gpu: which side starts first.", type=click.Choice(["victim", "mover"])
    )
    shape: str | None = option("With --gpu gemm: shape of the product.", "MxNxK")

    def case(self) -> DeviceCase | None:
        """The case; None where no option names one. UsageError for options of a case without --gpu."""
        if self.gpu is None:
            for member in self.members:
                value = getattr(self, member.name)
                if value is not None:
                    raise UsageError(
                        "is only valid with --gpu", field=member.name, value=value, hint="add --gpu gemm"
                    )
            return None
        if self.mover is None:
            raise UsageError("is needed with --gpu", field="mover", hint="add --mover copy, or sm_copy")
        if self.sms is not None and self.sms < 1:
            raise UsageError(
                "is not a valid number of SMs", field="sms", value=self.sms, hint="ask for 1 or more"
            )
        return DeviceCase(
            victim=self.gpu,
            mover=self.mover,
            direction=self.moves or "",
            sms=self.sms or 0,
            pace_mb_s=self.pace or 0.0,
            node=-1 if self.buffer_node is None else self.buffer_node,
            first=self.first or "mover",
            shape=() if self.shape is None else parse_shape(self.shape),
        )


class PredictResult(NamedTuple):
    """A model, the name of the part of it that answers, and its answer: one of the three."""

    model: Model
    name: str
    situations: list[Prediction] | None = None
    load: LoadPrediction | None = None
    cases: list[GpuPrediction] | None = None


class Predict(Verb):
    """Predict bandwidths alone and together in MB/s, with 90 % intervals.

    The model is a fitted M.json, or a machine of Swartvagher's thesis: billy, bora, dahu, diablo, grvingt,
    henri, henrisubnuma, occigen, pyxis. NUMA nodes are numbered from 0, starting with those of the first
    socket, where the computing cores are.
    """

    name = "predict"
    has_tables = True

    source: str = argument(metavar="M.json|NAME")
    cores: int | None = option("Computing cores of the first socket; default: every number.")
    cores_other: int = option("Computing cores of the second socket.", "M", default=0, show_default=False)
    comp_node: int | None = option("NUMA node of the computation's data.", "NODE")
    comm_node: int | None = option("NUMA node of the message buffers.", "NODE")
    everything: bool = option("Predict all placements (the default without nodes).", spelled="--all")
    model_kind: str | None = option(
        "Kind of model; default: flow if it was fitted, threshold for a published machine.",
        type=MODEL,
        formerly="--model",
    )
    faithful: bool = option("Use the thesis' equations exactly as printed (threshold).")
    size: int | None = option("Message size, if the model knows several: 1MiB.", "SIZE")
    intensity: float | None = option("Arithmetic intensity of the computation, flop/B.", "I")
    direction: Direction | None = option(
        "Direction of the messages; default: receive.", type=click.Choice(["receive", "send", "both"])
    )
    comm_threads: int | None = option("Number of communication threads; default: 1.", "K")
    group: tuple[str, ...] = option("N more computing cores of socket S with data on that node.", "S:N@NODE")
    copy: tuple[str, ...] = option(
        "Copy of an accelerator, with this bandwidth; d2h@NODE: with that of its model.", "RATE@NODE"
    )
    load: str | None = option("Read the load from a file (`elbowroom help predict`).", "LOAD.toml")
    device: CaseOptions = included(CaseOptions)
    out: str | None = out_option(FIGURE, "Draw the curves over the number of cores: .png or .svg.", "FIGURE")
    stacked: bool = option("With -o: stack both bandwidths, with the model's named points.")

    def do(self) -> PredictResult:
        """The answer to what the options describe: cases on an accelerator, a load, or situations."""
        from elbowroom.verbs.gpu_models import predict_cases
        from elbowroom.verbs.model_file import load_model

        if cases := self._cases():
            model = load_model(self.source)
            return PredictResult(model, "gpu", cases=predict_cases(model, cases))
        if any(getattr(self, name) not in (None, ()) for name in BEYOND):
            model = load_model(self.source)
            load = self._load(model)
            name = model.name(self.model_kind)
            return PredictResult(model, name, load=model.predict_load(load, model=name))
        self._check_nodes()
        model = load_model(self.source)
        # Only the threshold model has a faithful mode: asking for that is asking for it.
        chosen = "threshold" if self.faithful and self.model_kind is None else self.model_kind
        predictions = model.curves(
            n=self.cores,
            n_other=self.cores_other,
            comp_node=self.comp_node,
            comm_node=self.comm_node,
            model=chosen,
            faithful=self.faithful,
            size=self.size,
        )
        name = model.name(chosen)
        self._draw(model, predictions)
        return PredictResult(model, name, predictions)

    def _cases(self) -> Sequence[DeviceCase]:
        """The cases that options or the file of --load name; none where they are for something else.

        UsageError for options of a case without --gpu, or beside those of something else.
        """
        from elbowroom.verbs.gpu_models import read_cases

        own = {member.name for member in CaseOptions.members}
        if self.device.gpu is not None:
            self._check_alone({"source", *own})
        case = self.device.case()
        if case is not None:
            return (case,)
        cases = () if self.load is None else read_cases(self.load)
        if cases:
            self._check_alone({"source", "load", *own})
        return cases

    def _check_alone(self, allowed: Collection[str]) -> None:
        for member in self.members:
            if member.name in allowed or member.declared is None:
                continue
            if member.given(self):
                raise UsageError(
                    "cannot be combined with cases of an accelerator",
                    field=member.declared.typed(member.name),
                    hint="leave it out",
                )

    def _check_nodes(self) -> None:
        nodes = [self.comp_node, self.comm_node]
        if self.everything and nodes != [None, None]:
            raise UsageError(
                "cannot be combined with nodes", field="all", hint="leave out --comp-node and --comm-node"
            )
        if nodes.count(None) == 1:
            missing = "comp_node" if nodes[0] is None else "comm_node"
            raise UsageError(
                "is needed with the other node", field=missing, hint="give both nodes, or --all placements"
            )
        if self.cores_other and self.cores is None:
            raise UsageError(
                "is only valid with --cores",
                field="cores_other",
                value=self.cores_other,
                hint="add --cores N",
            )
        if self.stacked and self.out is None:
            raise UsageError("needs a file", field="stacked", hint="add -o FIGURE.png")

    def _draw(self, model: Model, predictions: list[Prediction]) -> None:
        """The figure of -o; panels go over all n, whatever --cores is."""
        from elbowroom.verbs.model_file import save_panels

        if self.out is None:
            return
        if self.stacked:
            files.save(model.stacked(self.comp_node or 0, faithful=self.faithful), Path(self.out))
            return
        if self.cores is not None:
            raise UsageError("a figure goes over all n", field="cores", hint="leave out --cores")
        if self.cores_other:
            raise UsageError(
                "a figure shows cores of the first socket", field="cores_other", hint="leave it out, or -o"
            )
        save_panels(model, model.panels(predictions), self.out)

    def _load(self, model: Model) -> Load:
        """The load that the options describe; UsageError where they contradict each other. `model` knows the
        rates of an accelerator's copies.
        """
        from elbowroom.verbs.gpu_models import copy_of
        from elbowroom.verbs.model_file import read_load

        for name in ("out", "stacked", "everything", "faithful"):
            if getattr(self, name):
                field = "all" if name == "everything" else name
                raise UsageError("cannot be combined with a load", field=field, hint="leave it out")
        if self.load is not None:
            others = [*BEYOND[:-1], "size", "cores", "comp_node", "comm_node"]
            others = [name for name in others if getattr(self, name) not in (None, ())]
            others += ["cores_other"] if self.cores_other else []
            if others:
                raise UsageError("is in the file", field=others[0], hint="leave it out, or leave out --load")
            return read_load(self.load)
        intensity = 0.0 if self.intensity is None else self.intensity
        groups = [*self._placed(intensity), *(parse_group(text, intensity) for text in self.group)]
        if self.intensity is not None and not groups:
            raise UsageError(
                "is only valid with computing cores", field="intensity", hint="add --cores N --comp-node NODE"
            )
        return Load(
            computing=tuple(groups),
            messages=self._messages(),
            copies=tuple(copy_of(model, text) for text in self.copy),
        )

    def _messages(self) -> Messages | None:
        if self.comm_node is not None:
            return Messages(
                node=self.comm_node,
                direction=self.direction or "receive",
                size=self.size,
                threads=1 if self.comm_threads is None else self.comm_threads,
            )
        for name in MESSAGES:
            if getattr(self, name) is not None:
                raise UsageError("is only valid with messages", field=name, hint="add --comm-node NODE")
        return None

    def _placed(self, intensity: float) -> list[Computing]:
        """The groups of --cores, --cores-other and --comp-node."""
        counts = ((0, self.cores or 0), (1, self.cores_other))
        groups = [(socket, count) for socket, count in counts if count]
        if not groups:
            if self.comp_node is not None:
                raise UsageError("is needed with --comp-node", field="cores", hint="add --cores N")
            return []
        if self.comp_node is None:
            raise UsageError("is needed with --cores", field="comp_node", hint="add --comp-node NODE")
        return [
            Computing(socket=socket, node=self.comp_node, count=count, intensity=intensity)
            for socket, count in groups
        ]

    @property
    def _is_single(self) -> bool:
        """Whether it is of one situation."""
        return self.cores is not None and self.comp_node is not None

    def document(self, result: PredictResult) -> Any:
        """One situation at the top, several in a list, a load, or cases."""
        from elbowroom.models.prediction_documents import load_document, situation_document
        from elbowroom.verbs.gpu_models import gpu_document

        if result.cases is not None:
            return gpu_document(result.model, result.cases)
        if result.load is not None:
            return load_document(result.model.document, result.name, result.load)
        return situation_document(
            result.model.document,
            result.name,
            result.situations or (),
            faithful=self.faithful,
            size=self.size,
            files=() if self.out is None else (Path(self.out),),
            single=self._is_single,
        )

    def print(self, result: PredictResult) -> None:
        """One situation, a table over n for each placement, a line for each stream, or for each case."""
        if result.cases is not None:
            model_tables.print_cases(result.model, result.cases)
            return
        if result.load is not None:
            _print_load(result.model, result.name, result.load)
            return
        predictions = result.situations or []
        if self._is_single:
            model_tables.print_prediction(result.model, result.name, predictions[0])
        else:
            model_tables.print_predictions(result.model, result.name, predictions)
        if self.out is not None:
            click.echo(self.out)

    def answer(self, result: PredictResult) -> Answer:
        """What both sides lose, at worst where there are several predictions."""
        from elbowroom.verbs import model_answers

        if result.cases is not None:
            return model_answers.cases_answer(result.cases)
        if result.load is not None:
            return model_answers.load_answer(result.model, result.load)
        return model_answers.prediction_answer(result.model, result.situations or [])


def _print_load(model: Model, name: str, prediction: LoadPrediction) -> None:
    """A line for each group, for the messages and for each copy: alone and together."""
    print_wrapped(shape_line(model.machine), style="bold")
    print_wrapped(f"{name}: {_words(model, prediction.load)}")
    print()
    table = new_table("~MB/s", ">alone", "90 %", ">together", "90 %", ">kept")
    both = (
        ("computation", prediction.load.computing, prediction.comp_alone, prediction.comp_together),
        ("communication", prediction.load.messages, prediction.comm_alone, prediction.comm_together),
    )
    for side, there, alone, together in both:
        if there:
            kept = f"{together.value / alone.value:.2f}" if alone.value else "-"
            table.add_row(
                side, number(alone.value), span(alone), number(together.value), span(together), kept
            )
    if len(prediction.groups) > 1:
        for group, rate in zip(prediction.load.computing, prediction.groups, strict=True):
            table.add_row(
                f"- {group.count} of socket {group.socket} on node {group.node}",
                "", "", number(rate.value), span(rate), "",
            )  # fmt: skip
    for copy, rate in zip(prediction.load.copies, prediction.copies, strict=True):
        kept = f"{rate.value / copy.demand:.2f}"
        table.add_row(
            f"copy, node {copy.node}", number(copy.demand), "", number(rate.value), span(rate), kept
        )
    print_table(table)
    print_flags([prediction])


def _words(model: Model, load: Load) -> str:
    """The load in words."""
    parts = []
    for group in load.computing:
        arithmetic = f" at {group.intensity:g} flop/B" if group.intensity else ""
        cores = f"{plural(group.count, 'core')} of socket {group.socket}"
        parts.append(f"{cores} computing{arithmetic} on data of node {group.node}")
    if load.messages is not None:
        item = load.messages
        way = {"receive": "into", "send": "from", "both": "from and into"}[item.direction]
        size = format_size(item.size if item.size is not None else model.document.calibration.size)
        threads = f", {item.threads} threads" if item.threads > 1 else ""
        parts.append(f"messages of {size} {way} node {item.node}{threads}")
    parts += [f"a copy of {copy.demand:g} MB/s at node {copy.node}" for copy in load.copies]
    return "; ".join(parts)
