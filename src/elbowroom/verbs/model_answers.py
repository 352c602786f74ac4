"""How the texts of `fit`, `evaluate` and `predict` end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.cli.answer import Answer, command_line
from elbowroom.quantities import format_size, number, percent, percent_span, plural
from elbowroom.verbs.model_tables import worst_loss

if TYPE_CHECKING:
    from elbowroom.models.curves import Shape
    from elbowroom.models.gpu.model import GpuPrediction
    from elbowroom.models.load import PredictedBandwidths, Prediction
    from elbowroom.verbs.model_file import Evaluation, Model

NEARLY = 0.99
"""Of what both sides move alone: if they move more than this together, nothing limits them."""
JOB = Path("job.toml")
"""The job that `advise` is asked about, if there is one in the working directory."""


def source_of(model: Model) -> str:
    """The file of a model, or the name of its published machine."""
    return model.machine.name if model.path is None else str(model.path)


def predict_command(source: Path | str, shape: Shape) -> str:
    """The command that predicts the machine with all cores of its first socket."""
    cores = shape.cores_first_socket
    return command_line("predict", source, "--cores", cores, "--comp-node", 0, "--comm-node", 0)


def advise_command(source: Path | str) -> str:
    """The command that asks for advice; without a job, the page that shows how to describe one."""
    return command_line("advise", source, "--job", JOB) if JOB.exists() else command_line("help", "advise")


def fit_answer(model: Model) -> Answer:
    """Which models there are and what they rest on; the next step is to predict."""
    from elbowroom.models.registry import fitted_models

    known, source = model.document.calibration, source_of(model)
    limit = next(iter(model.validity), "")
    if not (names := fitted_models(model.document)):
        return Answer(
            f"The accelerator of {model.machine.name} has a model: it predicts what its kernels and copies "
            "cost each other.",
            limit or f"It rests on {known.run}.",
            command_line("predict", source, "--gpu", "gemm", "--mover", "copy"),
        )
    others = f"; {', '.join(names[1:])} {'are' if len(names) > 2 else 'is'} there too" if names[1:] else ""
    rest = f"from {plural(known.runs, 'measured point')}" if known.runs else "with published parameters"
    cores = f"{known.n_low} to {known.n_high}" if known.n_low < known.n_high else f"{known.n_high}"
    return Answer(
        f"{model.machine.name} has a model: {model.name()} predicts both bandwidths, {rest}{others}.",
        f"They cover {cores} computing cores beside messages of {format_size(known.size)} in "
        f"{plural(len(known.placements), 'placement')}. {limit}".rstrip(),
        predict_command(source, model.machine),
    )


def evaluation_answer(evaluation: Evaluation) -> Answer:
    """The closest model beside the best rule without a fit."""
    from elbowroom.models.evaluate import MAX_MIN, NO_CONTENTION, ErrorTable

    table, model = evaluation.table, evaluation.model
    following = predict_command(source_of(model), model.machine)
    if not isinstance(table, ErrorTable):
        worst = max(table.lines, key=lambda line: line.victim)
        return Answer(
            f"Predictions of what kernels and copies keep are off by {percent(worst.victim)} at most, on "
            f"average of a kind of case ({worst.family}).",
            f"{percent(worst.covered, digits=0)} of those values lie inside the 90 % intervals; "
            f"{plural(sum(line.cases for line in table.lines), 'case')} were compared.",
            command_line("predict", source_of(model), "--gpu", "gemm", "--mover", "copy"),
        )
    errors = [(line.average, line.model) for line in table.lines if line.average is not None]
    naive = [item for item in errors if item[1] in (MAX_MIN, NO_CONTENTION)]
    fitted = [item for item in errors if item not in naive]
    if not fitted:
        return Answer("No model of the file answers this run.", f"It has {table.rows} points.", following)
    (least, best), rule = min(fitted), min(naive, default=None)
    return Answer(
        f"The closest model is {best}: it is off by {percent(least)} on average of {table.rows} points.",
        "No rule without a fit answers these points."
        if rule is None
        else f"The best rule without a fit, {rule[1]}, is off by {percent(rule[0])}.",
        following,
    )


def loss_words(predicted: PredictedBandwidths) -> str:
    """`the communication loses 13 % (0 % to 28 %)` of both sides that are there, the larger loss first: the
    interval is that of the bandwidth together, beside the predicted bandwidth alone.
    """
    sides = []
    for side, alone, together in (
        ("computation", predicted.comp_alone, predicted.comp_together),
        ("communication", predicted.comm_alone, predicted.comm_together),
    ):
        if alone.value:
            ends = (together.value, together.high, together.low)
            losses = [max(0.0, 1 - each / alone.value) for each in ends]
            lost = percent_span(*losses) if losses[0] >= 0.001 else f"nothing (at most {percent(losses[2])})"
            sides.append((losses[0], f"the {side} loses {lost}"))
    return " and ".join(text for _, text in sorted(sides, key=lambda item: -item[0]))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def prediction_answer(model: Model, predictions: Sequence[Prediction]) -> Answer:
    """What both sides lose, at worst where there are several predictions, and what they ask for and get."""
    worst = max(predictions, key=worst_loss)
    at, source = worst.situation, source_of(model)
    cores = plural(at.n + at.n_other, "computing core")
    head = f"At worst of {len(predictions)} predictions: with" if len(predictions) > 1 else "With"
    where = f"{head} {cores}, data on node {at.comp_node} and messages into node {at.comm_node},"
    if len(predictions) == 1:
        return Answer(f"{where} {loss_words(worst)}.", _shared(worst), advise_command(source))
    words: list[str | int] = [
        "predict",
        source,
        "--cores",
        at.n,
        "--comp-node",
        at.comp_node,
        "--comm-node",
        at.comm_node,
    ]
    words += ["--cores-other", at.n_other] if at.n_other else []
    return Answer(f"{where} {loss_words(worst)}.", _shared(worst), command_line(*words))


def load_answer(model: Model, predicted: PredictedBandwidths) -> Answer:
    """What both sides of a load lose."""
    return Answer(
        f"{_capital(loss_words(predicted)) or 'Nothing of this load computes or communicates'}.",
        _shared(predicted),
        advise_command(source_of(model)),
    )


def _shared(predicted: PredictedBandwidths) -> str:
    alone = predicted.comp_alone.value + predicted.comm_alone.value
    together = predicted.comp_together.value + predicted.comm_together.value
    limit = "they share a part that moves no more" if together < NEARLY * alone else "no part limits them"
    return f"Alone both move {number(alone)} MB/s in all, together {number(together)} MB/s: {limit}."


def cases_answer(predictions: Sequence[GpuPrediction]) -> Answer:
    """The case whose victim keeps least."""
    worst = min(predictions, key=lambda item: item.kept.value)
    losses = [max(0.0, 1 - kept) for kept in (worst.kept.value, worst.kept.high, worst.kept.low)]
    moved = worst.mover_together
    rate = "" if moved is None else f" The mover gets {number(moved.value)} MB/s there."
    return Answer(
        f"{_capital(worst.case.victim_text)} loses {percent_span(*losses)} beside {worst.case.mover_text}.",
        f"It is the largest loss of {plural(len(predictions), 'predicted case')}.{rate}",
        command_line("help", "gpu"),
    )
