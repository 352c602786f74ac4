"""`elbowroom advise` for a job of an accelerator."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.errors import UsageError
from elbowroom.quantities import number, percent, short_time, with_span

if TYPE_CHECKING:
    from elbowroom.api.gpu_advice import GpuAdvice, GpuConfiguration, GpuJob

SHOWN = 8
"""Setups in the table."""

_QUESTIONS = {
    "sms": "SMs for communication",
    "way": "Copy engine or kernel",
    "node": "NUMA node of the pinned buffer",
    "cores": "Computing cores beside the copies",
}
_OWN = {"job", "out", "as_json"}


def advise_gpu(
    source: str, job: GpuJob, as_json: bool, options: dict[str, Any], wrong: Collection[str]
) -> int:
    """Advises, prints, and writes the advice; `wrong`: options that only other jobs have."""
    for name in wrong:
        if name not in _OWN and options[name] not in (None, False):
            raise UsageError(
                "is not there for a job of an accelerator",
                field=name,
                value=options[name],
                hint="leave it out",
            )
    out: str | None = options["out"]
    if out is not None and not out.lower().endswith((".json", *api.gpu_advice.TUNER)):
        raise UsageError(
            "is neither advice (.json) nor a file for NCCL's tuner (.conf, .csv)",
            field="out",
            value=out,
            hint="end the name in one of these",
        )
    advice = api.advise_gpu(source, job)
    if out is not None:
        api.save_gpu_advice(advice, out)
    if as_json:
        print_json(advice)
    else:
        print_gpu_advice(advice)
        if out is not None:
            click.echo(out)
    return 0


def print_gpu_advice(advice: GpuAdvice) -> None:
    """The advice in a sentence, the answer to each question, the setups, and what to know."""
    virtual = " (virtual)" if advice.origin == "virtual" else ""
    print_wrapped(f"{advice.device or 'accelerator'}{virtual}: {advice.sms} SMs", style="bold")
    print_wrapped(f"{len(advice.configurations)} setups compared")
    for reason, count in advice.left_out.items():
        print_wrapped(f"- {count} not: {reason}", indent="  ")
    print()
    print_wrapped(advice.sentence, style="bold")
    print()
    for answer in advice.answers:
        value = "n/a" if answer.advised is None else str(answer.advised)
        print_wrapped(f"{_QUESTIONS[answer.question]}: {value}; {answer.reason.removeprefix('n/a: ')}")
        if answer.gain is not None:
            gain = with_span(
                *(percent(end) for end in (answer.gain.value, answer.gain.low, answer.gain.high))
            )
            print_wrapped(f"beside the best other value it saves {gain}", indent="  ")
    print()
    _print_setups(advice.configurations[:SHOWN])
    for note in advice.notes:
        print_wrapped(f"- {note}")


def _print_setups(configurations: tuple[GpuConfiguration, ...]) -> None:
    table = new_table(
        ("moved by", "wrap"), ("step", "right"), ("90 %", ""), ("kernel keeps", "right"),
        ("mover keeps", "right"), ("mover MB/s", "right"),
    )  # fmt: skip
    for item in configurations:
        table.add_row(
            item.setup.text(),
            short_time(item.total.value),
            f"{short_time(item.total.low)} to {short_time(item.total.high)}",
            f"{item.kept:.2f}",
            f"{item.mover_kept:.2f}",
            number(item.mover_alone),
        )
    console().print(table)
