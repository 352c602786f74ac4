"""Tables of accelerators: parameters and errors of a fit, predicted cases, evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.model_tables import percent, print_parameters, span
from elbowroom.errors import UsageError
from elbowroom.quantities import number

if TYPE_CHECKING:
    from elbowroom.api.gpu_models import GpuEvaluationDocument, GpuPrediction
    from elbowroom.verbs.model_file import Model


def print_gpu_fit(model: Model) -> None:
    """Parameters of the accelerator, and how far off predictions of each kind of case are, held out."""
    part = api.gpu_models.gpu_model(model).part
    print_parameters(f"gpu: {part.sms} SMs", part.parameters)
    if not part.errors:
        return
    print()
    print_wrapped("Errors of what victims keep, in %: as fitted, held out, and of rules without a fit")
    rows = [(item.family, item.cases, item.fitted, item.held_out, _rules(item)) for item in part.errors]
    _print_errors(("fitted", "held out"), rows)


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
    rows = [(line.family, line.cases, line.victim, line.mover, _rules(line)) for line in errors.lines]
    _print_errors(("victim", "mover"), rows)
    for line in errors.lines:
        print_wrapped(f"{line.family}: {line.covered:.0%} of the victim's values inside the 90 % intervals")
    for reason, count in errors.unanswered.items():
        print_wrapped(f"not answered: {count}, {reason}")
    for note in errors.notes:
        print_wrapped(note)
    return 0


_Rules = tuple[float | None, float | None, float | None]


def _rules(item: Any) -> _Rules:
    return item.share_rule, item.max_min_rule, item.no_loss_rule


def _print_errors(
    names: tuple[str, str], rows: Sequence[tuple[str, int, float, float | None, _Rules]]
) -> None:
    table = new_table(
        ("cases", "wrap"), ("", "right"), (names[0], "right"), (names[1], "right"), ("1 - k / S", "right"),
        ("max-min", "right"), ("no loss", "right"),
    )  # fmt: skip
    for family, count, first, second, rules in rows:
        table.add_row(family, str(count), percent(first), percent(second), *map(percent, rules))
    console().print(table)


def print_cases(model: Model, predictions: Sequence[GpuPrediction]) -> None:
    """A table for each victim with a line for each case, and what is said of them."""
    part = api.gpu_models.gpu_model(model).part
    virtual = " (virtual)" if part.origin == "virtual" else ""
    print_wrapped(f"{part.device or 'accelerator'}{virtual}: {part.sms} SMs", style="bold")
    victims: dict[str, list[GpuPrediction]] = {}
    for item in predictions:
        victims.setdefault(item.case.victim_text, []).append(item)
    for victim, items in victims.items():
        print()
        table = new_table(
            (f"{victim} beside", "wrap"), ("keeps", "right"), ("90 %", ""), ("mover MB/s", "right"),
            ("90 %", ""), ("keeps", "right"),
        )  # fmt: skip
        for item in items:
            moved, kept = item.mover_together, item.mover_kept
            rate = ("", "", "")
            if moved is not None and kept is not None:
                rate = (number(moved.value), span(moved), f"{kept.value:.2f}")
            between = f"{item.kept.low:.2f} to {item.kept.high:.2f}"
            table.add_row(item.case.mover_text, f"{item.kept.value:.3f}", between, *rate)
        console().print(table)
    for flag in dict.fromkeys(flag for item in predictions for flag in item.flags):
        count = sum(flag in item.flags for item in predictions)
        of = "" if count == len(predictions) else f" ({count} of {len(predictions)} cases)"
        print_wrapped(f"- {flag}{of}")
