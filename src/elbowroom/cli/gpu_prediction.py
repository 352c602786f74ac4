"""`elbowroom predict --gpu`: what kernels and copies of an accelerator keep beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elbowroom import api
from elbowroom.cli.console import print_json
from elbowroom.errors import UsageError
from elbowroom.verbs.model_tables import print_cases

if TYPE_CHECKING:
    from elbowroom.verbs.gpu_models import DeviceCase
    from elbowroom.verbs.model_file import Model

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
