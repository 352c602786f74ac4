"""`elbowroom overlap`: how long a step takes that computes and communicates at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import FIGURE, command, json_option
from elbowroom.cli.run_options import MODEL
from elbowroom.errors import UsageError
from elbowroom.quantities import number, parse_size

if TYPE_CHECKING:
    from elbowroom.api.steps import OverlappedStep, PredictedStep, Trial, WorkSplit


RIVAL_NAMES = {"total": "overlap model", "naive_max": "longer of the two", "naive_sum": "one after the other"}

MEGA = 1e6
"""B/s in a MB/s."""

_ANYWHERE = {"out", "figure", "as_json"}
_WITH = {
    "numbers": {"t_comp", "t_comm", "l_comp", "l_comm", "work", "p_comp", "p_acc", "w"},
    "table": {"table", "l_comp", "l_comm"},
    "model": {
        "source", "cores", "cores_other", "comp_node", "comm_node", "comp_bytes", "comm_bytes", "name",
        "faithful", "p_acc", "w", "split",
    },
}  # fmt: skip
_MODES = {"numbers": "times and ratios (a model is missing)", "table": "--table", "model": "a model"}
_FOR_SPLIT = ("work", "p_comp", "p_acc")


@command()
@click.argument("source", metavar="[M.json|NAME]", required=False)
@click.option("--t-comp", type=float, metavar="TIME", help="Time of the computation alone, in any unit.")
@click.option(
    "--t-comm", type=float, metavar="TIME", help="Time of the communication alone, in the same unit."
)
@click.option("--l-comp", type=float, metavar="RATIO", help="Bandwidth of the computation, alone / together.")
@click.option(
    "--l-comm", type=float, metavar="RATIO", help="Bandwidth of the communication, alone / together."
)
@click.option("--work", type=float, metavar="W", help="Work to split between CPU and accelerators.")
@click.option("--p-comp", type=float, metavar="P", help="With --work: work of the CPU per unit of time.")
@click.option(
    "--p-acc",
    type=float,
    metavar="P",
    help="Work of all accelerators per unit of time; with a model in MB/s.",
)
@click.option(
    "--w", type=float, metavar="SHARE", help="With --p-acc: also evaluate this share on the accelerators."
)
@click.option(
    "--split",
    is_flag=True,
    default=None,
    help="With a model: as --p-acc, the measured rate of its accelerator.",
)
@click.option("--table", metavar="FILE", help="Steps from a CSV file, or published ones: langguth2018.")
@click.option("--cores", type=int, metavar="N", help="With a model: computing cores of the first socket.")
@click.option(
    "--cores-other", type=int, metavar="M", help="With a model: computing cores of the second socket."
)
@click.option("--comp-node", type=int, metavar="NODE", help="NUMA node of the computation's data.")
@click.option("--comm-node", type=int, metavar="NODE", help="NUMA node of the message buffers.")
@click.option("--comp-bytes", metavar="SIZE", help="Bytes that all computing cores move in a step: 2GB.")
@click.option("--comm-bytes", metavar="SIZE", help="Bytes of the messages that arrive in a step: 64MB.")
@click.option("--model", "name", type=MODEL, help="Model to use; default: the best available.")
@click.option("--faithful", is_flag=True, default=None, help="Use the thesis' equations exactly as printed.")
@click.option("-o", "--out", type=FIGURE, metavar="FILE", help="Draw a figure: .png or .svg.")
@click.option(
    "--figure",
    type=click.Choice(["plane", "time"]),
    help="With -o: the plane of times (default), or performance over time.",
)
@json_option
def overlap(**options: Any) -> int:
    """Predict how long a step takes that overlaps computation and communication.

    Uses times alone and loss ratios; or a model (M.json, or a published machine) and the bytes of a step; or
    a table of measured steps. With accelerators, it also gives the best split of the work.
    """
    mode = (
        "model" if options["source"] is not None else "table" if options["table"] is not None else "numbers"
    )
    for name, value in options.items():
        if value is not None and name not in _WITH[mode] | _ANYWHERE:
            raise UsageError(
                f"cannot be combined with {_MODES[mode]}", field=name, value=value, hint="leave one out"
            )
    if options["figure"] is not None and options["out"] is None:
        raise UsageError(
            "no file is named for it", field="figure", value=options["figure"], hint="add -o FILE"
        )
    options["figure"] = options["figure"] or "plane"
    return {"table": _measured_steps, "model": _predicted, "numbers": _numbers}[mode](options)


def _numbers(options: dict[str, Any]) -> int:
    ratios = {name: _needed(options, name) for name in ("t_comm", "l_comp", "l_comm")}
    best, chosen = _splits(options, ratios)
    if best is not None and options["t_comp"] is None:
        step = best.step
    else:
        step = api.overlap(t_comp=_needed(options, "t_comp"), **ratios)
    if options["out"]:
        api.save_overlap_figure([("", step)], options["out"], figure=options["figure"])
    if options["as_json"]:
        own = options["t_comp"] is not None
        print_json(api.step_documents.step_document(step, best, chosen, own=own))
    else:
        _print_numbers(step, best, chosen)
    return 0


def _needed(options: dict[str, Any], name: str) -> Any:
    if options[name] is None:
        raise UsageError("is missing", field=name, hint=f"give --{name.replace('_', '-')}")
    return options[name]


def _splits(options: dict[str, Any], ratios: dict[str, float]) -> tuple[WorkSplit | None, WorkSplit | None]:
    """The best split and the given one, where they are asked for."""
    if all(options[name] is None for name in (*_FOR_SPLIT, "w")):
        return None, None
    node = api.steps.AcceleratedNode(**{name: _needed(options, name) for name in _FOR_SPLIT}, **ratios)
    return node.best_split(), None if options["w"] is None else node.split(options["w"])


def _print_numbers(
    step: OverlappedStep, best: WorkSplit | None, chosen: WorkSplit | None, unit: str = ""
) -> None:
    sides = new_table(("", ""), (f"alone{unit}", "right"), (f"contended{unit}", "right"))
    sides.add_row("computation", number(step.t_comp), number(step.comp_contended))
    sides.add_row("communication", number(step.t_comm), number(step.comm_contended))
    console().print(sides)
    print()
    totals = new_table(("", ""), (f"step{unit}", "right"))
    for name, label in RIVAL_NAMES.items():
        totals.add_row(label, number(getattr(step, name)))
    console().print(totals)
    print()
    if step.fraction_of_ideal is not None:
        print_wrapped(
            f"Fraction of ideal: {number(step.fraction_of_ideal, 3)} (1: nothing is lost, 0: overlapping "
            "saves nothing, below 0: it costs time)."
        )
    print_wrapped(api.steps.worth(step))
    for split, label in ((best, "Best split"), (chosen, "This split")):
        if split is not None:
            print_wrapped(
                f"{label}: {split.w:.4f} of the work on the accelerators. They take {number(split.t_acc)}, "
                f"the CPU with its communication {number(split.step.total)}, the step {number(split.total)}."
            )


def _predicted(options: dict[str, Any]) -> int:
    for name in ("cores", "comp_node", "comm_node", "comp_bytes", "comm_bytes"):
        _needed(options, name)
    # Only the threshold model has a faithful mode: asking for that is asking for it.
    chosen: str | None = options["name"] or ("threshold" if options["faithful"] else None)
    predicted = api.overlap_predicted(
        options["source"],
        cores=options["cores"],
        cores_other=options["cores_other"] or 0,
        comp_node=options["comp_node"],
        comm_node=options["comm_node"],
        comp_bytes=_bytes(options, "comp_bytes"),
        comm_bytes=_bytes(options, "comm_bytes"),
        name=chosen,
        faithful=bool(options["faithful"]),
    )
    step, best, given = predicted.step, None, None
    if options["split"]:
        if options["p_acc"] is not None:
            raise UsageError("cannot be combined with --split", field="p_acc", hint="leave one out")
        options["p_acc"] = api.gpu_models.accelerator_rate(api.load_model(options["source"]))
    if options["p_acc"] is not None:
        node = api.steps.AcceleratedNode(
            work=predicted.comp_bytes,
            p_comp=predicted.p_comp,
            p_acc=options["p_acc"] * MEGA,
            t_comm=step.t_comm,
            l_comp=step.l_comp,
            l_comm=step.l_comm,
        )
        best, given = node.best_split(), None if options["w"] is None else node.split(options["w"])
    elif options["w"] is not None:
        _needed(options, "p_acc")
    if options["out"]:
        api.save_overlap_figure([("", step)], options["out"], figure=options["figure"], unit="s")
    if options["as_json"]:
        print_json(api.step_documents.step_document(step, best, given, predicted=predicted))
    else:
        _print_predicted(predicted)
        _print_numbers(step, best, given, " (s)")
    return 0


def _bytes(options: dict[str, Any], name: str) -> int:
    return 0 if options[name].strip() == "0" else parse_size(options[name], name)


def _print_predicted(predicted: PredictedStep) -> None:
    """What the model was asked, what it flags, and the interval of the total."""
    at, high = predicted.prediction.situation, predicted.high
    cores = f"{at.n} computing cores" + (f" and {at.n_other} of the second socket" if at.n_other else "")
    print_wrapped(
        f"{cores}, data of computations on node {at.comp_node}, of communications on node {at.comm_node}"
    )
    for flag in predicted.prediction.flags:
        print_wrapped(f"- {flag}", indent="  ")
    most = "without bound" if high is None else number(high)
    print_wrapped(f"Total from the ends of all 90 % intervals: {number(predicted.low)} to {most} s")
    print()


def _measured_steps(options: dict[str, Any]) -> int:
    trials = api.overlap_table(options["table"], l_comp=options["l_comp"], l_comm=options["l_comm"])
    if options["out"]:
        steps = [(trial.label, trial.step) for trial in trials]
        api.save_overlap_figure(steps, options["out"], figure=options["figure"])
    if options["as_json"]:
        print_json(api.step_documents.step_table_document(trials))
    else:
        _print_table(trials)
    return 0


def _print_table(trials: Sequence[Trial]) -> None:
    columns = ("step", ""), ("comp", "right"), ("comm", "right"), ("measured", "right")
    table = new_table(
        *columns, ("predicted", "right"), *((name, "right") for name in ("model", "max", "sum"))
    )
    for trial in trials:
        errors = [_percent(trial.error(rival)) for rival in api.steps.RIVALS]
        step, measured = trial.step, "-" if trial.measured is None else number(trial.measured)
        times = (number(step.t_comp), number(step.t_comm), measured, number(step.total))
        table.add_row(trial.label, *times, *errors)
    console().print(table)
    print()
    print_wrapped(
        "Errors are (predicted - measured) / measured; max: the longer of the two, sum: one after the other."
    )
    means = api.steps.deviations(trials)
    if not means:
        return
    table_of_means = new_table(
        ("mean absolute error", ""), ("of the measured", "right"), ("of the predicted", "right")
    )
    for name, label in RIVAL_NAMES.items():
        of = means[name]
        predicted = "-" if of.of_predicted is None else f"{of.of_predicted:.2%}"
        table_of_means.add_row(label, f"{of.of_measured:.2%}", predicted)
    print()
    console().print(table_of_means)


def _percent(error: float | None) -> str:
    return "-" if error is None else f"{error:+.1%}"
