"""Tables of 80 columns for models of machines and of accelerators: parameters, predictions, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom.cli.console import print_all, print_list, print_wrapped, styled
from elbowroom.cli.tables import LARGEST_LOSSES, new_table, print_table
from elbowroom.quantities import format_size, number, plural

if TYPE_CHECKING:
    from elbowroom.models.curves import Shape
    from elbowroom.models.document import Calibration
    from elbowroom.models.evaluate import Errors
    from elbowroom.models.flow.part import FlowParameter, FlowPart
    from elbowroom.models.gpu.kind import GpuErrorTable
    from elbowroom.models.gpu.model import GpuPrediction
    from elbowroom.models.load import LoadPrediction, PredictedBandwidths, Prediction
    from elbowroom.models.threshold.law import Parameters, ThresholdPart
    from elbowroom.stats.interval import Interval
    from elbowroom.verbs.model_file import Evaluation, Model


UNITS = {
    "n_par_max": "cores",
    "n_seq_max": "cores",
    "alpha": "",
    "delta_l": "MB/s/core",
    "delta_r": "MB/s/core",
}


def shape_line(shape: Shape) -> str:
    """The machine as models see it, in one line."""
    nodes = plural(shape.nodes, "NUMA node")
    nic = "" if shape.nic_node is None else f", NIC at node {shape.nic_node}"
    virtual = " (virtual)" if shape.virtual else ""
    unlike = ""
    if not isinstance(shape.layout, msgspec.UnsetType):
        each = (f"{cores} + {inside}" for cores, inside in shape.layout)
        unlike = f"; cores + NUMA nodes by socket: {', '.join(each)}"
    cores = plural(shape.cores_first_socket, "core")
    sockets = plural(shape.sockets, "socket")
    return f"{shape.name}{virtual}: {cores} on the first of {sockets}, {nodes}{nic}{unlike}"


def calibration_line(known: Calibration) -> str:
    """What the models rest on."""
    if known.origin == "published":
        return f"Published: {known.run}"
    plan = f", plan{'s' if known.with_runs else ''} {known.plan}" if known.plan else ""
    runs = " and ".join((known.run, *known.with_runs))
    if not known.runs:
        return f"Calibrated on {runs} ({known.origin}{plan}): an accelerator only"
    other = f", up to {known.n_other_high} of the other socket" if known.n_other_high else ""
    places = plural(len(known.placements), "placement")
    return (
        f"Calibrated on {runs} ({known.origin}{plan}): {known.runs} runs of {known.kernel} beside "
        f"messages of {format_size(known.size)}, {known.n_low} to {known.n_high} computing cores{other}, "
        f"{places}"
    )


def print_fit(model: Model) -> None:
    """Machine, calibration, a table of parameters for each model, where not to trust them."""
    document = model.document
    print_wrapped(shape_line(document.machine), style="bold")
    print_wrapped(calibration_line(document.calibration))
    for reason, count in document.calibration.left_out.items():
        print_wrapped(f"left out: {plural(count, 'point')}, {reason}", indent="  ")
    for side in ("local", "remote"):
        _print_threshold(side, document.models.threshold, document.models.robust)
    _print_flow(document.models.flow)
    _print_validity(model)
    print()
    print_wrapped(f"model: {model.path}")


def _print_threshold(side: str, thesis: ThresholdPart | None, robust: ThresholdPart | None) -> None:
    """Parameters of one side by both calibrations; the thesis' has no intervals."""
    columns = [("thesis", thesis), ("robust", robust)]
    parts: list[tuple[str, Parameters]] = [
        (name, getattr(part, side)) for name, part in columns if part is not None and getattr(part, side)
    ]
    if not parts:
        return
    print()
    table = new_table(f"threshold, {side} data", *(f">{name}" for name, _ in parts), ">90 %", "")
    intervals = robust.intervals.get(side, {}) if robust is not None else {}
    for field in msgspec.structs.fields(type(parts[0][1])):
        values = [number(getattr(parameters, field.name), 4) for _, parameters in parts]
        there = intervals.get(field.name)
        band = "" if there is None else span(there)
        table.add_row(field.name, *values, band, UNITS.get(field.name, "MB/s"))
    print_table(table)


def _print_flow(part: FlowPart | None) -> None:
    if part is None:
        return
    print_parameters("flow", part.parameters)
    if part.load is not None:
        print_parameters("flow, other loads", part.load.parameters)


def print_parameters(title: str, parameters: Sequence[FlowParameter]) -> None:
    """A line for each parameter."""
    print()
    table = new_table(title, ">value", "90 %", "", "~what it is")
    for item in parameters:
        band = f"{number(item.low, 4)} to {number(item.high, 4)}"
        unit = "" if item.unit == "1" else item.unit
        table.add_row(item.name, number(item.value, 4), band, unit, item.text)
    print_table(table)


def _print_validity(model: Model) -> None:
    if model.validity:
        print()
        print_wrapped("Limits of the model:")
    print_list(model.validity, indent="  ")


def span(interval: Interval) -> str:
    """low to high"""
    return f"{number(interval.low, 4)} to {number(interval.high, 4)}"


def print_prediction(model: Model, name: str, prediction: Prediction) -> None:
    """One situation: both sides alone and together."""
    at = prediction.situation
    print_wrapped(shape_line(model.machine), style="bold")
    other = f" and {at.n_other} of the other socket" if at.n_other else ""
    cores = f"{plural(at.n, 'core')}{other}"
    print_wrapped(
        f"{name}: {cores} computing on data of node {at.comp_node}, messages into node {at.comm_node}"
    )
    print()
    table = new_table("MB/s", ">alone", "90 %", ">together", "90 %", ">kept")
    for side, alone, together in (
        ("computation", prediction.comp_alone, prediction.comp_together),
        ("communication", prediction.comm_alone, prediction.comm_together),
    ):
        kept = f"{together.value / alone.value:.2f}" if alone.value else "-"
        table.add_row(side, number(alone.value), span(alone), number(together.value), span(together), kept)
    print_table(table)
    print_flags([prediction])
    if "repaired" in prediction.flags:
        print_published(model, name, prediction)


def print_published(model: Model, name: str, prediction: Prediction) -> None:
    """What the equations as published say of the same situation, beside the repaired answer."""
    exact = published(model, name, prediction)
    parts = [
        f"{side} {number(together.value)} MB/s together, kept {together.value / alone.value:.2f}"
        for side, alone, together in (
            ("computation", exact.comp_alone, exact.comp_together),
            ("communication", exact.comm_alone, exact.comm_together),
        )
        if alone.value
    ]
    print_wrapped(f"as published: {'; '.join(parts)}")


def published(model: Model, name: str, prediction: Prediction) -> Prediction:
    """The prediction of the same situation by the equations as published."""
    return model.answers((prediction.situation,), model=name, faithful=True)[0]


def print_predictions(model: Model, name: str, predictions: Sequence[Prediction]) -> None:
    """A table over n for each placement."""
    print_wrapped(shape_line(model.machine), style="bold")
    print_wrapped(f"{name}, MB/s; together with its 90 % interval")
    places = dict.fromkeys((item.situation.comp_node, item.situation.comm_node) for item in predictions)
    for comp, comm in places:
        print()
        print_wrapped(f"Data of the computation on node {comp}, message buffers on node {comm}", style="bold")
        table = new_table(">n", ">comp alone", ">together", "90 %", ">comm alone", ">together", "90 %", "")
        for item in predictions:
            at = item.situation
            if (at.comp_node, at.comm_node) == (comp, comm):
                mark = styled("*", "yellow") if "extrapolated" in item.flags else styled("")
                table.add_row(
                    f"{at.n}+{at.n_other}" if at.n_other else str(at.n),
                    number(item.comp_alone.value, 4),
                    number(item.comp_together.value, 4),
                    span(item.comp_together),
                    number(item.comm_alone.value, 4),
                    number(item.comm_together.value, 4),
                    span(item.comm_together),
                    mark,
                    weight=worst_loss(item),
                )
        print_table(table, LARGEST_LOSSES)
    print_flags(predictions)


def worst_loss(prediction: PredictedBandwidths) -> float:
    """The larger of the shares that both sides lose."""
    sides = (
        (prediction.comp_alone, prediction.comp_together),
        (prediction.comm_alone, prediction.comm_together),
    )
    return max((1 - together.value / alone.value for alone, together in sides if alone.value), default=0.0)


def print_evaluation(evaluation: Evaluation) -> None:
    """A line for each model and stream, the naive ones last, the thesis' own errors below; of a run of an
    accelerator a line for each kind of case.
    """
    from elbowroom.models.evaluate import ErrorTable

    table = evaluation.table
    if not isinstance(table, ErrorTable):
        _print_case_errors(table, evaluation.notes)
        return
    print_wrapped(
        f"{table.machine}: mean |measured - predicted| / measured of {table.rows} runs, in %", style="bold"
    )
    samples = ", ".join(f"{comp}/{comm}" for comp, comm in table.samples)
    print_wrapped(
        f"Samples: data of computations/communications on nodes {samples}. "
        "Inside: share of the measured values in the 90 % intervals, widened by their own intervals."
    )
    print()
    shown = new_table(
        "",
        ">comm\nsamples",
        ">\nothers",
        ">\nall",
        ">comp\nsamples",
        ">\nothers",
        ">\nall",
        ">\naverage",
        ">\ninside",
    )
    for line in table.lines:
        covered = [share for share in (line.comm.covered, line.comp.covered) if share is not None]
        inside = f"{100 * sum(covered) / len(covered):.0f} %" if covered else ""
        cells = [percent(value) for value in (*_three(line.comm), *_three(line.comp), line.average)]
        shown.add_row(line.model, *cells, inside)
    if evaluation.published is not None:
        printed = evaluation.published
        cells = [
            f"{value:.2f}"
            for errors in (printed.comm, printed.comp)
            for value in (errors.samples, errors.non_samples, errors.all)
        ]
        shown.add_row("thesis, Table 6.1", *cells, f"{printed.average:.2f}", "")
    print_table(shown)
    for line in table.lines:
        if line.unanswered:
            print_wrapped(f"{line.model}: does not know {line.unanswered} of the {table.rows} runs")
    if evaluation.notes:
        print()
    print_all(evaluation.notes)


def _three(errors: Errors) -> tuple[float | None, float | None, float | None]:
    return errors.samples, errors.others, errors.all


def percent(value: float | None) -> str:
    """Two decimals, as the thesis prints them."""
    return "-" if value is None else f"{100 * value:.2f}"


MEANINGS = {
    "extrapolated": "beyond what was measured",
    "virtual": "the machine is simulated",
    "repaired": "the equations as published contradict themselves here; --faithful predicts by them",
}


def print_flags(predictions: Sequence[Prediction | LoadPrediction]) -> None:
    """What to know of the answers, and how many of them it concerns."""
    counts = Counter(flag for item in predictions for flag in item.flags)
    if counts:
        print()
    for flag, count in counts.items():
        where = "" if count == len(predictions) else f" ({count} of {len(predictions)})"
        star = " *" if flag == "extrapolated" and len(predictions) > 1 else ""
        meaning = f": {MEANINGS[flag]}" if flag in MEANINGS else ""
        print_wrapped(f"{flag}{star}{where}{meaning}")


def print_gpu_fit(model: Model) -> None:
    """Parameters of the accelerator, and how far off predictions of each kind of case are, held out."""
    from elbowroom.verbs.gpu_models import gpu_model

    part = gpu_model(model).part
    print_parameters(f"gpu: {part.sms} SMs", part.parameters)
    if not part.errors:
        return
    print()
    print_wrapped("Errors of what victims keep, in %: as fitted, held out, and of rules without a fit")
    rows = [(item.family, item.cases, item.fitted, item.held_out, _rules(item)) for item in part.errors]
    _print_errors(("fitted", "held out"), rows)


def _print_case_errors(errors: GpuErrorTable, notes: Sequence[str]) -> None:
    """Errors of the model, and of rules without a fit."""
    print_wrapped(
        f"{errors.device or 'accelerator'}: mean |predicted - measured| / measured, in %", style="bold"
    )
    rows = [(line.family, line.cases, line.victim, line.mover, _rules(line)) for line in errors.lines]
    _print_errors(("victim", "mover"), rows)
    for line in errors.lines:
        print_wrapped(f"{line.family}: {line.covered:.0%} of the victim's values inside the 90 % intervals")
    for reason, count in errors.unanswered.items():
        print_wrapped(f"not answered: {count}, {reason}")
    print_all(notes)


_Rules = tuple[float | None, float | None, float | None]


def _rules(item: Any) -> _Rules:
    return item.share_rule, item.max_min_rule, item.no_loss_rule


def _print_errors(
    names: tuple[str, str], rows: Sequence[tuple[str, int, float, float | None, _Rules]]
) -> None:
    table = new_table("~cases", ">", f">{names[0]}", f">{names[1]}", ">1 - k / S", ">max-min", ">no loss")
    for family, count, first, second, rules in rows:
        table.add_row(family, str(count), percent(first), percent(second), *map(percent, rules))
    print_table(table)


def print_cases(model: Model, predictions: Sequence[GpuPrediction]) -> None:
    """A table for each victim with a line for each case, and what is said of them."""
    from elbowroom.verbs.gpu_models import gpu_model

    part = gpu_model(model).part
    virtual = " (virtual)" if part.origin == "virtual" else ""
    print_wrapped(f"{part.device or 'accelerator'}{virtual}: {part.sms} SMs", style="bold")
    victims: dict[str, list[GpuPrediction]] = {}
    for item in predictions:
        victims.setdefault(item.case.victim_text, []).append(item)
    for victim, items in victims.items():
        print()
        table = new_table(f"~{victim} beside", ">keeps", "90 %", ">mover MB/s", "90 %", ">keeps")
        for item in items:
            moved, kept = item.mover_together, item.mover_kept
            rate = ("", "", "")
            if moved is not None and kept is not None:
                rate = (number(moved.value), span(moved), f"{kept.value:.2f}")
            between = f"{item.kept.low:.2f} to {item.kept.high:.2f}"
            table.add_row(item.case.mover_text, f"{item.kept.value:.3f}", between, *rate)
        print_table(table)
    for flag in dict.fromkeys(flag for item in predictions for flag in item.flags):
        count = sum(flag in item.flags for item in predictions)
        of = "" if count == len(predictions) else f" ({count} of {len(predictions)} cases)"
        print_wrapped(f"- {flag}{of}")
