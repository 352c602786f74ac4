"""Text of advice: for jobs on cores, for jobs of accelerators, and beside what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_list, print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.quantities import format_size, number, percent, short_time, with_span
from elbowroom.verbs.model_tables import shape_line

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice, Choice, Configuration
    from elbowroom.advise.gpu_job import GpuAdvice, GpuConfiguration
    from elbowroom.advise.verification import Compared
    from elbowroom.stats.interval import Interval

SHOWN = 8
"""Setups of an accelerator in the table."""

QUESTIONS = {
    "sms": "SMs for communication",
    "way": "Copy engine or kernel",
    "node": "NUMA node of the pinned buffer",
    "cores": "Computing cores beside the copies",
}


def print_compared(compared: Compared) -> None:
    """Both steps and the gain, predicted and measured side by side."""
    from elbowroom.advise.verification import span

    print()
    table = new_table("", ">predicted", "90 %", ">measured", "90 %")
    for name, item, measured in (
        ("present step", compared.now, compared.now_measured),
        ("other step", compared.other, compared.other_measured),
    ):
        table.add_row(name, *_time(item.total), *_time(measured))
    table.add_row("gain", *_split(span(compared.predicted)), *_split(span(compared.measured)))
    print_table(table)
    print_wrapped(f"{compared.repetitions} repetitions of each setup, in random order")
    print_wrapped(f"run: {compared.source}")


def _time(interval: Interval) -> tuple[str, str]:
    return short_time(interval.value), f"{short_time(interval.low)} to {short_time(interval.high)}"


def _split(text: str) -> tuple[str, str]:
    value, _, rest = text.partition(" (")
    return value, rest.rstrip(")")


def print_advice(advice: Advice | GpuAdvice) -> None:
    """The advice in a sentence, both configurations, each choice, the runners-up, what to know; of an
    accelerator the answer to each question, and the setups.
    """
    from elbowroom.advise.gpu_job import GpuAdvice

    if isinstance(advice, GpuAdvice):
        _print_gpu_advice(advice)
        return
    print_wrapped(shape_line(advice.machine), style="bold")
    left = sum(advice.left_out.values())
    others = f"; {left} more cannot be predicted" if left else ""
    print_wrapped(f"{advice.job.name}: {advice.considered} setups compared by {advice.name}{others}")
    for reason, count in advice.left_out.items():
        print_wrapped(f"- {count}: {reason}", indent="  ")
    print()
    _print_configurations(advice)
    for choice in advice.choices:
        print()
        _print_choice(choice)
    if advice.notes:
        print()
        print_list(advice.notes)


def advice_answer(advice: Advice, model: Path | str, job: Path | str) -> Answer:
    """The advice in a sentence, the reason of its first change, and the command that measures it: on the
    virtual machine where the model is of one.
    """
    changed = next(iter(advice.changes), None)
    now = advice.now
    why = changed.reason if changed else next((choice.reason for choice in advice.choices), "")
    virtual = ("--machine", advice.machine.name) if advice.machine.virtual else ()
    return Answer(
        advice.sentence,
        why or f"A step takes {short_time(now.total.value)} now, and no other setup is certain to be faster.",
        command_line("advise", model, "--job", job, "--verify", *virtual),
        "green" if advice.significant else "",
    )


def compared_answer(compared: Compared) -> Answer:
    """What was gained, beside what was predicted; the measurements are a run."""
    from elbowroom.advise.verification import span

    why = f"Predicted was a gain of {span(compared.predicted)}, measured is {span(compared.measured)}, in "
    why += f"{compared.repetitions} repetitions of each setup."
    if compared.reasons:
        why = f"Too noisy to trust: {' '.join(compared.reasons)}"
    return Answer(
        compared.sentence,
        why,
        command_line("show", compared.source)
        if Path(compared.source, "manifest.json").exists()
        else command_line("help", "advise"),
        "green" if compared.trusted else "yellow",
    )


def _print_configurations(advice: Advice) -> None:
    from elbowroom.advise.setups import differing

    table = new_table("step", ">T_M", ">L_M", ">T_N", ">L_N", ">total", "90 %", "~what differs")
    for index, item in enumerate(advice.configurations):
        name = ("now", "advised")[index] if index < 2 else f"runner-up {index - 1}"
        if index == 1 and not advice.changes:
            continue
        differs = differing(item.setup, advice.now.setup)
        table.add_row(
            name, short_time(item.t_comp), _loss(item, item.l_comp),
            short_time(item.t_comm), _loss(item, item.l_comm),
            *_time(item.total),
            ", ".join(f"{axis} {_value(axis, getattr(item.setup, axis))}" for axis in differs),
        )  # fmt: skip
    print_table(table)


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
    return with_span(percent(interval.value), percent(interval.low), percent(interval.high))


def _print_gpu_advice(advice: GpuAdvice) -> None:
    virtual = " (virtual)" if advice.origin == "virtual" else ""
    print_wrapped(f"{advice.device or 'accelerator'}{virtual}: {advice.sms} SMs", style="bold")
    print_wrapped(f"{len(advice.configurations)} setups compared")
    for reason, count in advice.left_out.items():
        print_wrapped(f"- {count} not: {reason}", indent="  ")
    print()
    for answer in advice.answers:
        value = "n/a" if answer.advised is None else str(answer.advised)
        print_wrapped(f"{QUESTIONS[answer.question]}: {value}; {answer.reason.removeprefix('n/a: ')}")
        if answer.gain is not None:
            print_wrapped(f"beside the best other value it saves {_gain(answer.gain)}", indent="  ")
    print()
    _print_setups(advice.configurations[:SHOWN])
    print_list(advice.notes)


def _print_setups(configurations: tuple[GpuConfiguration, ...]) -> None:
    table = new_table("~moved by", ">step", "90 %", ">kernel keeps", ">mover keeps", ">mover MB/s")
    for item in configurations:
        table.add_row(
            item.setup.text(),
            *_time(item.total),
            f"{item.kept:.2f}",
            f"{item.mover_kept:.2f}",
            number(item.mover_alone),
        )
    print_table(table)
