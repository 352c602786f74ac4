"""`elbowroom predict --gpu`: what kernels and copies of an accelerator keep beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elbowroom import api
from elbowroom.api.quantities import number
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.model_tables import percent, span
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.advice import Interval
    from elbowroom.api.gpu_models import DeviceCase, GpuEvaluationDocument, GpuPrediction
    from elbowroom.api.models import Model

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--gpu",
        type=click.Choice(["gemm", "triad", "chain"]),
        help="Predict this kernel of the accelerator beside --mover.",
    ),
    click.option(
        "--mover",
        type=click.Choice(["copy", "sm_copy", "sm_idle", "sm_target"]),
        help="With --gpu: a copy engine, SMs that copy, idle SMs, or SMs left out of the plan.",
    ),
    click.option("--sms", type=int, metavar="K", help="With --gpu: SMs of the mover; default: several."),
    click.option(
        "--moves",
        type=click.Choice(["h2d", "d2h", "both", "d2d", "hbm", "host"]),
        help="With --gpu: where the mover moves data.",
    ),
    click.option("--pace", type=float, metavar="MB/s", help="With --gpu: the most that the mover moves."),
    click.option(
        "--buffer-node", type=int, metavar="NODE", help="With --gpu: NUMA node of the pinned buffer."
    ),
    click.option(
        "--first", type=click.Choice(["victim", "mover"]), help="With --gpu: which side starts first."
    ),
    click.option("--shape", metavar="MxNxK", help="With --gpu gemm: shape of the product."),
)
NAMES = ("gpu", "mover", "sms", "moves", "pace", "buffer_node", "first", "shape")


def gpu_options(function: F) -> F:
    """The options of a case on an accelerator."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def asked(options: dict[str, Any]) -> tuple[DeviceCase, ...]:
    """The cases that options or the file of --load name; none where they ask for something else.

    UsageError for options of a case without --gpu, or beside those of something else.
    """
    own = [name for name in NAMES if options[name] is not None]
    if options["gpu"] is None:
        if own:
            raise UsageError(
                "is only valid with --gpu", field=own[0], value=options[own[0]], hint="add --gpu gemm"
            )
        cases = () if options["load"] is None else api.read_cases(options["load"])
        _check_alone(options, allowed=(*NAMES, "load")) if cases else None
        return cases
    _check_alone(options, allowed=NAMES)
    if options["mover"] is None:
        raise UsageError("is needed with --gpu", field="mover", hint="add --mover copy, or sm_copy")
    return (
        api.gpu_models.DeviceCase(
            victim=options["gpu"],
            mover=options["mover"],
            direction=options["moves"] or "",
            sms=_count(options["sms"]),
            pace_mb_s=options["pace"] or 0.0,
            node=-1 if options["buffer_node"] is None else options["buffer_node"],
            first=options["first"] or "mover",
            shape=() if options["shape"] is None else api.gpu_models.parse_shape(options["shape"]),
        ),
    )


def _count(sms: int | None) -> int:
    if sms is not None and sms < 1:
        raise UsageError("is no number of SMs", field="sms", value=sms, hint="ask for 1 or more")
    return sms or 0


def _check_alone(options: dict[str, Any], allowed: Sequence[str]) -> None:
    for name, value in options.items():
        if name not in allowed and value not in (None, (), False, 0):
            field = "all" if name == "everything" else name
            raise UsageError(
                "cannot be combined with cases of an accelerator", field=field, hint="leave it out"
            )


def predict_cases(model: Model, cases: Sequence[DeviceCase], as_json: bool) -> int:
    """Predicts, and prints a line for each case."""
    predictions = api.predict_cases(model, cases)
    if as_json:
        print_json(api.gpu_models.gpu_document(model, predictions))
    else:
        print_cases(model, predictions)
    return 0


def print_cases(model: Model, predictions: Sequence[GpuPrediction]) -> None:
    """A line for each case, and what is said of it."""
    part = api.gpu_models.gpu_model(model).part
    virtual = " (virtual)" if part.origin == "virtual" else ""
    print_wrapped(f"{part.device or 'accelerator'}{virtual}: {part.sms} SMs", style="bold")
    print()
    table = new_table(
        ("case", "wrap"), ("victim keeps", "right"), ("90 %", ""), ("mover MB/s", "right"), ("90 %", ""),
        ("keeps", "right"),
    )  # fmt: skip
    for item in predictions:
        moved, kept = item.mover_together, item.mover_kept
        rate = (
            ("", "", "")
            if moved is None or kept is None
            else (number(moved.value), span(moved), _share(kept))
        )
        between = f"{item.kept.low:.2f} to {item.kept.high:.2f}"
        table.add_row(item.case.text(), f"{item.kept.value:.3f}", between, *rate)
    console().print(table)
    for flag in dict.fromkeys(flag for item in predictions for flag in item.flags):
        which = [item for item in predictions if flag in item.flags]
        of = "" if len(which) == len(predictions) else f" ({len(which)} of {len(predictions)} cases)"
        print_wrapped(f"- {flag}{of}")


def _share(interval: Interval) -> str:
    return f"{interval.value:.2f}"


def print_gpu_evaluation(errors: GpuEvaluationDocument, as_json: bool, options: dict[str, Any]) -> int:
    """A line for each kind of case: errors of the model, and of rules without a fit."""
    if options["out"] is not None:
        raise UsageError("there is no figure for a run of an accelerator", field="out", hint="leave it out")
    if as_json:
        print_json(errors)
        return 0
    print_wrapped(
        f"{errors.device or 'accelerator'}: mean |predicted - measured| / measured, in %", style="bold"
    )
    table = new_table(
        ("cases", "wrap"), ("", "right"), ("victim", "right"), ("mover", "right"), ("inside", "right"),
        ("1 - k / S", "right"), ("max-min", "right"), ("no loss", "right"),
    )  # fmt: skip
    for line in errors.lines:
        rules = (line.share_rule, line.max_min_rule, line.no_loss_rule)
        table.add_row(
            line.family, str(line.cases), percent(line.victim), percent(line.mover), f"{line.covered:.0%}",
            *(percent(value) for value in rules),
        )  # fmt: skip
    console().print(table)
    print_wrapped("Inside: of the 90 % intervals, widened by those of the measured values.")
    for reason, count in errors.unanswered.items():
        print_wrapped(f"not answered: {count}, {reason}")
    for note in errors.notes:
        print_wrapped(note)
    return 0
