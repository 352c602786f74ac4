"""`elbowroom advise`: from a prediction to a better run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.gpu_advice import advise_gpu
from elbowroom.cli.model_tables import shape_line
from elbowroom.cli.options import NOISY, REPEAT, Output, command, json_option
from elbowroom.cli.run_options import MODEL, parse_hosts
from elbowroom.errors import UsageError
from elbowroom.quantities import format_size, percent, short_time, with_span

if TYPE_CHECKING:
    from elbowroom.api.advice import Advice, Choice, Compared, Configuration, Interval


REPETITIONS = 9


@command()
@click.argument("source", metavar="M.json|NAME")
@click.option(
    "--job", metavar="JOB.toml", required=True, help="The job and its choices (`elbowroom help advise`)."
)
@click.option(
    "--model",
    "name",
    type=MODEL,
    help="Default: flow if it was fitted; threshold for a published machine.",
)
@click.option(
    "--collectives",
    metavar="RUN",
    help="Run of the plan `collectives`: how long the job's collective takes each way.",
)
@click.option(
    "-o",
    "--out",
    type=Output(),
    metavar="FILE",
    help="Write the advice (.json), the contention map (.svg, .png), or NCCL tuning (.conf).",
)
@click.option("--verify", is_flag=True, help="Then measure the present and the advised setup.")
@click.option("--run", metavar="RUN", help="With --verify: folder of the measurements; never overwritten.")
@click.option("--resume", metavar="RUN", help="With --verify: continue measurements that were stopped.")
@click.option(
    "--repeat", type=REPEAT, metavar="N", help="With --verify: repetitions of each setup; default 9."
)
@click.option("--machine", metavar="MACHINE", help="With --verify: use a virtual machine: henri:credits.")
@click.option("--noise", type=float, metavar="SHARE", help="With --machine: relative noise of its values.")
@click.option("--seed", type=click.IntRange(min=0), help="With --verify: seed of the order and of the noise.")
@click.option("--launcher", metavar="NAME", help="With --verify: as in `elbowroom run`.")
@click.option("--mpi", metavar="MPI", help="With --verify: as in `elbowroom run`.")
@click.option("--hosts", metavar="A,B", help="With --verify: hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="With --verify: file of hosts for mpiexec, one per line.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --verify: time limit of one repetition or program run.",
)
@dry_run_option
@json_option
def advise(source: str, as_json: bool, **options: Any) -> int:
    """Advise how to run a job: cores, nodes, messages, threads, overlap.

    Compares every setup that the job allows, and advises the changes whose gain is significant, each with its
    predicted gain, the 90 % interval, and the reason. A job with a table [gpu] is one of an accelerator: who
    moves its data, with how many SMs, from which node, beside how many cores.
    """
    job = api.load_gpu_job(options["job"])
    if job is not None:
        return advise_gpu(source, job, as_json, options, ("name", "collectives", "verify", *_OF_VERIFY))
    _check(options)
    save = _saver(options["out"])
    run = None if options["collectives"] is None else api.open(options["collectives"])
    advice = api.advise(source, options["job"], name=options["name"], collectives=run)
    if options["dry_run"]:
        return _show_planned(advice, source, as_json, options)
    if options["out"] is not None:
        save(advice, options["out"])
    if not as_json:
        print_advice(advice)
        if options["out"] is not None:
            click.echo(options["out"])
    compared = _verified(advice, source, options) if options["verify"] else None
    if as_json:
        print_json(advice if compared is None else {**_plain(advice), "verified": compared})
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
            raise UsageError(
                "is only valid with --verify", field=name, value=options[name], hint="add --verify"
            )


def _saver(out: str | None) -> Callable[[Advice, str], object]:
    """What writes a file of that name; refused before anything is computed."""
    suffix = Path(out or "").suffix.lower()
    if suffix in ("", ".json"):
        return api.save_advice
    if suffix in (".svg", ".png"):
        return api.save_map
    raise UsageError(
        "is neither advice (.json) nor a picture of the map (.svg, .png)",
        field="out",
        value=out,
        hint="end the name in one of these",
    )


def _show_planned(advice: Advice, source: str, as_json: bool, options: dict[str, Any]) -> int:
    """What the verification would start; without --verify nothing is started."""
    if not options["verify"]:
        raise UsageError("is only valid with --verify", field="dry_run", hint="add --verify")
    planned = api.advice.plan_verification(
        advice,
        source,
        repetitions=options["repeat"] or REPETITIONS,
        hosts=parse_hosts(options["hosts"]),
        **{name: options[name] for name in ("machine", "noise", "seed", "launcher", "mpi", "hostfile")},
    )
    return show_planned(planned, as_json)


def _verified(advice: Advice, source: str, options: dict[str, Any]) -> Compared:
    return api.verify_advice(
        advice,
        source,
        repetitions=options["repeat"] or REPETITIONS,
        patience=options["timeout"],
        hosts=parse_hosts(options["hosts"]),
        command=("elbowroom", *sys.argv[1:]),
        **{name: options[name] for name in ("run", "resume", "machine", "noise", "seed")},
        **{name: options[name] for name in ("launcher", "mpi", "hostfile")},
    )


def _plain(advice: Advice) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(advice)
    return plain


def print_compared(compared: Compared) -> None:
    """Both steps and the gain, predicted and measured side by side."""
    print()
    print_wrapped(compared.sentence, style="bold")
    table = new_table(("", ""), ("predicted", "right"), ("90 %", ""), ("measured", "right"), ("90 %", ""))
    for name, item, measured in (
        ("present step", compared.now, compared.now_measured),
        ("other step", compared.other, compared.other_measured),
    ):
        table.add_row(name, *_time(item.total), *_time(measured))
    table.add_row(
        "gain", *_split(api.advice.span(compared.predicted)), *_split(api.advice.span(compared.measured))
    )
    console().print(table)
    print_wrapped(f"{compared.repetitions} repetitions of each setup, in random order")
    for reason in compared.reasons:
        print_wrapped(f"- too noisy to trust: {reason}")
    print()
    print_wrapped(f"run: {compared.source}")


def _time(interval: Interval) -> tuple[str, str]:
    return short_time(interval.value), f"{short_time(interval.low)} to {short_time(interval.high)}"


def _split(text: str) -> tuple[str, str]:
    value, _, rest = text.partition(" (")
    return value, rest.rstrip(")")


def print_advice(advice: Advice) -> None:
    """The advice in a sentence, both configurations, each choice, the runners-up, what to know."""
    print_wrapped(shape_line(advice.machine), style="bold")
    left = sum(advice.left_out.values())
    others = f"; {left} more cannot be answered" if left else ""
    print_wrapped(f"{advice.job.name}: {advice.considered} setups compared by {advice.name}{others}")
    for reason, count in advice.left_out.items():
        print_wrapped(f"- {count}: {reason}", indent="  ")
    print()
    print_wrapped(advice.sentence, style="bold")
    print()
    _print_configurations(advice)
    for choice in advice.choices:
        print()
        _print_choice(choice)
    if advice.notes:
        print()
        for note in advice.notes:
            print_wrapped(f"- {note}")


def _print_configurations(advice: Advice) -> None:
    table = new_table(
        ("step", ""), ("T_M", "right"), ("L_M", "right"), ("T_N", "right"), ("L_N", "right"),
        ("total", "right"), ("90 %", ""), ("what differs", "wrap"),
    )  # fmt: skip
    for index, item in enumerate(advice.configurations):
        name = ("now", "advised")[index] if index < 2 else f"runner-up {index - 1}"
        if index == 1 and not advice.changes:
            continue
        differs = api.advice.differing(item.setup, advice.now.setup)
        table.add_row(
            name, short_time(item.t_comp), _loss(item, item.l_comp),
            short_time(item.t_comm), _loss(item, item.l_comm),
            short_time(item.total.value), f"{short_time(item.total.low)} to {short_time(item.total.high)}",
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
    if choice.now == choice.advised:
        print_wrapped(f"{choice.axis} {_value(choice.axis, choice.now)}: {choice.reason}")
        return
    print_wrapped(f"{choice.axis} {_value(choice.axis, choice.advised)}: {choice.reason}")
    if choice.alone is not None:
        print_wrapped(f"changing only this gains {_gain(choice.alone)}", indent="  ")
    along = f" (with {', '.join(choice.goes_with)})" if choice.goes_with else ""
    if choice.back is not None:
        print_wrapped(f"keeping it as now{along} would lose {_gain(choice.back)}", indent="  ")


def _gain(interval: Interval) -> str:
    return with_span(
        percent(interval.value),
        percent(interval.low),
        percent(interval.high),
    )
