"""`elbowroom advise`: from a prediction to a better run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.commands import NOISY, _json, group
from elbowroom.cli.output import print_json
from elbowroom.errors import UsageError
from elbowroom.plan.sizes import format_size

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice, Choice, Configuration
    from elbowroom.advise.checking import Compared
    from elbowroom.model.prediction import Interval

REPETITIONS = 9


@group.command()
@click.argument("source", metavar="M.json|NAME")
@click.option(
    "--job", metavar="JOB.toml", required=True, help="What the job does and may choose (docs/advise.md)."
)
@click.option(
    "--model",
    "name",
    type=click.Choice(["threshold", "robust", "flow"]),
    help="Default: flow where it was fitted; of a published machine threshold.",
)
@click.option("-o", "--out", metavar="FILE", help="Write the advice as JSON; .svg, .png: the contention map.")
@click.option("--verify", is_flag=True, help="Then measure the present and the advised configuration.")
@click.option("--run", metavar="RUN", help="With --verify: folder of the measurements; never overwritten.")
@click.option("--resume", metavar="RUN", help="With --verify: go on with one that was stopped.")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="With --verify: pairs; default 9.")
@click.option("--machine", metavar="MACHINE", help="With --verify: a virtual machine answers: henri:credits.")
@click.option("--noise", type=float, metavar="SHARE", help="With --machine: noise of its values.")
@click.option("--seed", type=click.IntRange(min=0), help="With --verify: seed of the order; of the noise.")
@click.option("--launcher", metavar="NAME", help="With --verify: as of `elbowroom run`.")
@click.option("--mpi", metavar="MPI", help="With --verify: as of `elbowroom run`.")
@click.option("--hosts", metavar="A,B", help="With --verify: hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="With --verify: hosts for mpiexec, one a line.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --verify: patience for one repetition or run.",
)
@_json
def advise(source: str, as_json: bool, **options: Any) -> int:
    """How a job should run: cores, nodes, messages, threads, overlap.

    Compares every setup that the job may choose, and advises the changes that surely gain, each with its
    predicted gain, the 90 % interval, and the reason.
    """
    from elbowroom import api

    _check(options)
    save = _saver(options["out"])
    found = api.advise(source, options["job"], name=options["name"])
    if options["out"] is not None:
        save(found, options["out"])
    if not as_json:
        print_advice(found)
        if options["out"] is not None:
            click.echo(options["out"])
    compared = _verified(found, source, options) if options["verify"] else None
    if as_json:
        print_json(found if compared is None else {**_plain(found), "verified": compared})
    elif compared is not None:
        print_compared(compared)
    return NOISY if compared is not None and not compared.trusted else 0


_OF_VERIFY = (
    "run",
    "resume",
    "repeat",
    "machine",
    "noise",
    "seed",
    "launcher",
    "mpi",
    "hosts",
    "hostfile",
    "timeout",
)


def _check(options: dict[str, Any]) -> None:
    for name in _OF_VERIFY:
        if options[name] is not None and not options["verify"]:
            raise UsageError("goes with --verify only", field=name, value=options[name], mend="add --verify")


def _saver(out: str | None) -> Callable[[Advice, str], object]:
    """What writes a file of that name; refused before anything is computed."""
    from elbowroom import api

    suffix = Path(out or "").suffix.lower()
    if suffix in ("", ".json"):
        return api.save_advice
    if suffix in (".svg", ".png"):
        return api.save_map
    raise UsageError(
        "is neither advice (.json) nor a picture of the map (.svg, .png)",
        field="out",
        value=out,
        mend="end the name in one of these",
    )


def _verified(found: Advice, source: str, options: dict[str, Any]) -> Compared:
    from elbowroom import api

    hosts = options["hosts"]
    return api.verify_advice(
        found,
        source,
        repetitions=options["repeat"] or REPETITIONS,
        patience=options["timeout"],
        hosts=() if hosts is None else [word.strip() for word in hosts.split(",")],
        command=("elbowroom", *sys.argv[1:]),
        **{name: options[name] for name in ("run", "resume", "machine", "noise", "seed")},
        **{name: options[name] for name in ("launcher", "mpi", "hostfile")},
    )


def _plain(found: Advice) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(found)
    return told


def print_compared(found: Compared) -> None:
    """Both steps and the gain, predicted and measured side by side."""
    from elbowroom.advise.checking import span
    from elbowroom.cli.tables import _say, _table, console

    print()
    _say(found.sentence, style="bold")
    table = _table(("", ""), ("predicted", "right"), ("90 %", ""), ("measured", "right"), ("90 %", ""))
    for name, item, measured in (
        ("present step", found.now, found.now_measured),
        ("other step", found.other, found.other_measured),
    ):
        table.add_row(name, *_time(item.total), *_time(measured))
    table.add_row("gain", *_split(span(found.predicted)), *_split(span(found.measured)))
    console().print(table)
    _say(f"{found.repetitions} pairs, in random order")
    for reason in found.reasons:
        _say(f"- too noisy to trust: {reason}")
    print()
    _say(f"run: {found.source}")


def _time(found: Interval) -> tuple[str, str]:
    from elbowroom.advise.reasons import seconds

    return seconds(found.value), f"{seconds(found.low)} to {seconds(found.high)}"


def _split(text: str) -> tuple[str, str]:
    value, _, rest = text.partition(" (")
    return value, rest.rstrip(")")


def print_advice(found: Advice) -> None:
    """The advice in a sentence, both configurations, each choice, the runners-up, what to know."""
    from elbowroom.cli.model_tables import shape_line
    from elbowroom.cli.tables import _say

    _say(shape_line(found.machine), style="bold")
    left = sum(found.left_out.values())
    others = f"; {left} more cannot be answered" if left else ""
    _say(f"{found.job.name}: {found.considered} setups compared by {found.name}{others}")
    for reason, count in found.left_out.items():
        _say(f"- {count}: {reason}", indent="  ")
    print()
    _say(found.sentence, style="bold")
    print()
    _print_configurations(found)
    for choice in found.choices:
        print()
        _print_choice(choice)
    if found.notes:
        print()
        for note in found.notes:
            _say(f"- {note}")


def _print_configurations(found: Advice) -> None:
    from elbowroom.advise.reasons import seconds
    from elbowroom.advise.setups import differing
    from elbowroom.cli.tables import _table, console

    table = _table(
        ("step", ""), ("T_M", "right"), ("L_M", "right"), ("T_N", "right"), ("L_N", "right"),
        ("total", "right"), ("90 %", ""), ("what differs", "wrap"),
    )  # fmt: skip
    for index, item in enumerate(found.configurations):
        name = ("now", "advised")[index] if index < 2 else f"runner-up {index - 1}"
        if index == 1 and not found.changes:
            continue
        differs = differing(item.setup, found.now.setup)
        table.add_row(
            name, seconds(item.t_comp), _loss(item, item.l_comp),
            seconds(item.t_comm), _loss(item, item.l_comm),
            seconds(item.total.value), f"{seconds(item.total.low)} to {seconds(item.total.high)}",
            ", ".join(f"{axis} {_value(axis, getattr(item.setup, axis))}" for axis in differs),
        )  # fmt: skip
    console().print(table)


def _loss(item: Configuration, ratio: float) -> str:
    """Only what overlaps loses."""
    return f"{ratio:.2f}" if item.setup.overlap else "-"


def _value(axis: str, value: Any) -> str:
    if axis == "size":
        return "the model's" if value is None else format_size(value)
    return str(value).lower() if isinstance(value, bool) else f"{value:.4g}" if axis == "w" else str(value)


def _print_choice(choice: Choice) -> None:
    from elbowroom.cli.tables import _say

    if choice.now == choice.advised:
        _say(f"{choice.axis} {_value(choice.axis, choice.now)}: {choice.reason}")
        return
    _say(f"{choice.axis} {_value(choice.axis, choice.advised)}: {choice.reason}")
    if choice.alone is not None:
        _say(f"changing only this gains {_gain(choice.alone)}", indent="  ")
    along = f" (with {', '.join(choice.goes_with)})" if choice.goes_with else ""
    if choice.back is not None:
        _say(f"keeping it as now{along} would lose {_gain(choice.back)}", indent="  ")


def _gain(found: Interval) -> str:
    from elbowroom.advise.reasons import percent

    return f"{percent(found.value)} ({percent(found.low)} to {percent(found.high)})"
