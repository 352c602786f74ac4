"""Results in a few sentences and a figure, for `print` and for notebooks (`elbowroom.display`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from elbowroom.errors import ElbowroomError
from elbowroom.quantities import number, percent, plural, short_time, span, with_span

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice
    from elbowroom.advise.gpu_job import GpuAdvice
    from elbowroom.advise.verification import Compared
    from elbowroom.advise.what_if import WhatIf
    from elbowroom.draw.figure import Figure
    from elbowroom.explain.explanation import Explanation
    from elbowroom.models.load import LoadPrediction, PredictedBandwidths, Prediction
    from elbowroom.stats.interval import Interval
    from elbowroom.studies.document import StudyDocument
    from elbowroom.trace.documents import Stat
    from elbowroom.trace.overlap.document import OverlapComparison, TraceOverlap
    from elbowroom.verbs.calibrate import Calibrated
    from elbowroom.verbs.compare import Changes
    from elbowroom.verbs.diagnosis import Diagnosis
    from elbowroom.verbs.model_file import Evaluation, Model
    from elbowroom.verbs.profile import Profiled, ShownProfile
    from elbowroom.verbs.run_folder import Run
    from elbowroom.verbs.trace import TraceActivity
    from elbowroom.verbs.trace_record import RecordDocument

FACTS = 5
"""Sentences besides title and verdict, at most."""


class ResultSummary(NamedTuple):
    """What a result is, its verdict, facts that explain it, and the command that leads on; `draw` makes its
    figure, which only notebooks show.
    """

    title: str
    verdict: str
    facts: Sequence[str] = ()
    next: str = ""
    draw: Callable[[], Sequence[Figure]] = tuple


def summary(result: Any) -> ResultSummary:
    """A result in a few sentences. Raises what reading it raises: ElbowroomError for a damaged run."""
    shown = SUMMARIES[type(result).__name__](result)
    return shown._replace(facts=tuple(fact for fact in shown.facts if fact)[:FACTS])


def text(result: Any) -> str:
    """The summary as lines; a sentence where the result cannot be read."""
    try:
        shown = summary(result)
    except ElbowroomError as error:
        return f"{result!r}\n{error.sentence()}"
    following = f"next: {shown.next}" if shown.next else ""
    return "\n".join(filter(None, (shown.title, shown.verdict, *shown.facts, following)))


def html(result: Any) -> str:
    """The summary as a cell of a notebook, with its figure. It never raises: a notebook would show a
    traceback in place of the result.
    """
    from elbowroom.draw.html import cell

    try:
        shown = summary(result)
    except Exception as error:
        return cell(repr(result), _reason(error), (), ())
    try:
        return cell(shown.title, shown.verdict, shown.facts, shown.draw()[:1], shown.next)
    except Exception as error:
        facts = (*shown.facts, f"There is no figure: {_reason(error)}.")
        return cell(shown.title, shown.verdict, facts, (), shown.next)


def _reason(error: Exception) -> str:
    return error.sentence() if isinstance(error, ElbowroomError) else f"{type(error).__name__}: {error}"


def _run(run: Run) -> ResultSummary:
    from elbowroom.report.first_screen import loss_figure, shown_point
    from elbowroom.verbs.run_answer import run_answer
    from elbowroom.verbs.run_tables import machine_line

    def draw() -> Sequence[Figure]:
        point = shown_point(points, run.verdict)
        return run.figures if point is None else (loss_figure(points, point),)

    answer, points = run_answer(run), run.points()
    others = [item.text for item in run.findings if item.text not in answer.verdict + answer.why]
    state = plural(len(points), "point") + ("" if run.manifest.finished else ", unfinished")
    return ResultSummary(
        f"{run.manifest.plan['name']} on {machine_line(run.machine)}; {state}",
        answer.verdict,
        (answer.why, *others[:1]),
        answer.next,
        draw,
    )


def _model(model: Model) -> ResultSummary:
    from elbowroom.models.registry import fitted_models
    from elbowroom.verbs.model_tables import calibration_line, shape_line

    fitted = fitted_models(model.document)
    verdict = (
        f"Predicts with {model.name()}; it also has {', '.join(others)}."
        if (others := [name for name in fitted if name != model.name()])
        else f"Predicts with {fitted[0]}."
    )

    def draw() -> Sequence[Figure]:
        return model.panels(model.curves(comp_node=0, comm_node=0)) if fitted else ()

    return ResultSummary(
        shape_line(model.machine),
        verdict if fitted else "Predicts kernels and copies of an accelerator.",
        (f"{calibration_line(model.document.calibration)}.", *model.validity),
        draw=draw,
    )


def _bandwidths(title: str, predicted: PredictedBandwidths) -> ResultSummary:
    sides = (
        ("communication", predicted.comm_alone, predicted.comm_together),
        ("computation", predicted.comp_alone, predicted.comp_together),
    )
    losses = [
        f"{side} loses {percent(max(0.0, 1 - together.value / alone.value), digits=0)}"
        for side, alone, together in sides
        if alone.value > 0
    ]
    verdict = f"{' and '.join(losses)}."
    return ResultSummary(
        title,
        verdict[:1].upper() + verdict[1:],
        [
            f"{side[:1].upper()}{side[1:]}: {_rate(alone)} alone, {_rate(together)} together"
            for side, alone, together in sides
        ]
        + [f"Flags: {', '.join(predicted.flags)}"] * bool(predicted.flags),
        draw=lambda: (_bars(title, sides),),
    )


def _rate(value: Interval) -> str:
    return f"{number(value.value)} MB/s ({span(number(value.low), number(value.high))})"


def _bars(title: str, sides: Sequence[tuple[str, Interval, Interval]]) -> Figure:
    """Both sides alone and together, with their 90 % intervals."""
    from elbowroom.draw.figure import Axis, Figure, Series

    series = tuple(
        Series(
            name=f"{side}",
            side=side,  # type: ignore[arg-type]
            style="line",
            x=(float(2 * place), float(2 * place + 1)),
            y=(alone.value, together.value),
            low=(alone.low, together.low),
            high=(alone.high, together.high),
            drawn="bars",
            value="prediction",
            band="90 % interval",
        )
        for place, (side, alone, together) in enumerate(sides)
    )
    names = tuple(f"{side} {style}" for side, *_ in sides for style in ("alone", "together"))
    return Figure(
        name="prediction", title=title, x=Axis(label="", names=names), left=Axis(label="MB/s"), series=series
    )


def _prediction(prediction: Prediction) -> ResultSummary:
    at = prediction.situation
    other = f" and {at.n_other} of the other socket" if at.n_other else ""
    return _bandwidths(
        f"{plural(at.n, 'core')}{other} computing on data of node {at.comp_node}, messages into node "
        f"{at.comm_node}",
        prediction,
    )


def _load_prediction(prediction: LoadPrediction) -> ResultSummary:
    load = prediction.load
    cores = plural(sum(group.count for group in load.computing), "computing core")
    copies = f", {plural(len(load.copies), 'copy' if len(load.copies) == 1 else 'copie')}" * bool(load.copies)
    messages = ", messages" if load.messages else ""
    return _bandwidths(f"A load: {cores}{messages}{copies}", prediction)


def _evaluation(evaluation: Evaluation) -> ResultSummary:
    from elbowroom.models.evaluate import ErrorTable

    table = evaluation.table
    errors = [(line.model, line.average) for line in table.lines] if isinstance(table, ErrorTable) else []
    known = [(name, error) for name, error in errors if error is not None]
    verdict = "Its errors are in `table`."
    if known:
        name, least = min(known, key=lambda item: item[1])
        verdict = f"The closest is {name}: it is off by {percent(least)} on average."

    def draw() -> Sequence[Figure]:
        model = evaluation.model
        return model.panels(model.curves(comp_node=0, comm_node=0), evaluation.run) if known else ()

    return ResultSummary(
        f"{evaluation.model.machine.name}: the model beside {evaluation.run.path}",
        verdict,
        (*(f"{name}: {percent(error)}" for name, error in known), *evaluation.notes),
        draw=draw,
    )


def _calibrated(done: Calibrated) -> ResultSummary:
    from elbowroom.verbs.calibrate import saved
    from elbowroom.verbs.run_tables import machine_line

    of_model = () if done.model is None else (f"model: {done.model.path}",)
    return ResultSummary(
        f"Calibration of {machine_line(done.run.machine)}",
        saved(done.calibration),
        (*of_model, f"run: {done.run.path}", *done.unknown),
        draw=tuple if done.model is None else _model(done.model).draw,
    )


def _advice(advice: Advice) -> ResultSummary:
    from elbowroom.verbs.advise import map_figures
    from elbowroom.verbs.model_tables import shape_line

    return ResultSummary(
        f"{advice.job.name} on {shape_line(advice.machine)}; {plural(advice.considered, 'setup')} compared",
        advice.sentence,
        (
            *(f"{choice.axis} {choice.advised}: {choice.reason}" for choice in advice.changes),
            f"A step takes {short_time(advice.now.total.value)} now.",
            *advice.notes,
        ),
        draw=lambda: map_figures(advice),
    )


def _gpu_advice(advice: GpuAdvice) -> ResultSummary:
    return ResultSummary(
        f"{advice.device or 'accelerator'}: {plural(len(advice.configurations), 'setup')} compared",
        advice.sentence,
        [answer.reason for answer in advice.answers],
    )


def _compared(compared: Compared) -> ResultSummary:
    return ResultSummary("Advice, measured", compared.sentence, compared.reasons)


def _what_if(what_if: WhatIf) -> ResultSummary:
    return ResultSummary(
        f"{what_if.profile} with the model {what_if.model}",
        f"Now it takes {short_time(what_if.now_s)}.",
        [
            f"{change.name}: {_gain(change.change)}" if change.change is not None else f"{change.name}: n/a"
            for change in what_if.changes
        ],
    )


def _gain(change: Interval) -> str:
    values = (percent(value, sign=True) for value in (change.value, change.low, change.high))
    return with_span(*values)


def _diagnosis(diagnosis: Diagnosis) -> ResultSummary:
    from elbowroom.verbs.diagnose import missing_sentences, steps_sentence

    if diagnosis.advice is None:
        verdict, why = missing_sentences(diagnosis)
        return ResultSummary(diagnosis.profile, verdict, (why, steps_sentence(diagnosis), *diagnosis.notes))
    advised = _advice(diagnosis.advice)
    return ResultSummary(
        f"{diagnosis.profile} with the model {diagnosis.model}",
        advised.verdict,
        (steps_sentence(diagnosis), *diagnosis.notes),
        draw=advised.draw,
    )


def _explanation(explanation: Explanation) -> ResultSummary:
    from elbowroom.verbs.explain import explanation_figures

    virtual = " (virtual machine)" if explanation.virtual else ""
    return ResultSummary(
        f"{explanation.machine}{virtual}: where the losses come from",
        " ".join(explanation.summary or (() if explanation.trusted else ("No verdict.",))),
        (*explanation.reasons, *(statement.text for statement in explanation.statements)),
        draw=lambda: explanation_figures(explanation),
    )


def _changes(changes: Changes) -> ResultSummary:
    from elbowroom.verbs.compare import sentence

    significant = [change for change in changes if change.significant]
    return ResultSummary(
        f"{plural(len(changes), 'value')} of two runs" if changes else "Two runs",
        sentence(changes, changes.at_least),
        [
            f"{change.point}: {change.side} {change.phase} "
            + _gain_of(change.change, change.low, change.high)
            for change in sorted(significant, key=lambda change: -abs(change.change))
        ],
    )


def _gain_of(value: float, low: float, high: float) -> str:
    return with_span(*(percent(each, sign=True) for each in (value, low, high)))


def _study(study: StudyDocument) -> ResultSummary:
    from elbowroom.verbs.study import headline, warnings

    refuted = [
        f"{exhibit.label}, {statement.verdict}: {statement.text}"
        for exhibit in study.exhibits
        for statement in exhibit.statements
        if statement.verdict == "refuted"
    ]
    facts = (*warnings(study), *refuted, f"report: {study.report}")
    return ResultSummary(study.paper, headline(study), facts)


def _profile(profile: ShownProfile) -> ResultSummary:
    from elbowroom.profile.figures import profile_figures

    first, *others = (sentence for sentence, _ in profile.sentences())
    return ResultSummary(
        str(profile.analysis.profile.folder),
        first,
        others,
        draw=lambda: profile_figures(profile.analysis, profile.summary),
    )


def _profiled(profiled: Profiled) -> ResultSummary:
    from elbowroom.cli.answer import command_line

    done = profiled.document
    return ResultSummary(
        f"A profile in {done.directory}",
        f"{plural(done.ranks, 'rank')} made {done.calls} MPI calls in {number(done.seconds, 3)} s; exit code "
        f"{done.exit_code}.",
        done.notes,
        command_line("profile", "show", done.directory),
    )


def _stat(stat: Stat) -> ResultSummary:
    from elbowroom.trace.activity_figures import trace_figures

    events = sum(kind.events for kind in stat.types)
    most = sorted((kind for kind in stat.types if kind.events), key=lambda kind: -kind.events)
    return ResultSummary(
        f"A trace of {plural(len(stat.ranks), 'rank')}",
        f"{events} events of {plural(len(most), 'type')} in {number(stat.duration_ns / 1e9)} s.",
        (
            *stat.doubts,
            *stat.warnings,
            *(f"{kind.name}: {plural(kind.events, 'event')}" for kind in most[:3]),
        ),
        draw=lambda: trace_figures(stat),
    )


def _recorded(done: RecordDocument) -> ResultSummary:
    from elbowroom.cli.answer import command_line

    inner = ResultSummary("", "No process recorded anything.") if done.stat is None else _stat(done.stat)
    ended = "" if not done.exit_code else f"The program ended with exit code {done.exit_code}."
    return inner._replace(
        title=f"A trace in {done.directory}; the program ran {number(done.seconds, 3)} s",
        facts=(ended, *done.notes, *inner.facts),
        next=command_line("trace", "overlap", done.jobs[0].directory) if done.jobs else "",
    )


def _activity(shown: TraceActivity) -> ResultSummary:
    from elbowroom.trace.activity_figures import activity_figures

    tasks, messages = shown.tasks(), shown.communications()
    return ResultSummary(
        "Tasks, workers and messages of a trace",
        f"{plural(len(tasks), 'task')} and {plural(len(messages), 'message')}.",
        () if shown.trusted else ("The times of this trace cannot be trusted.",),
        draw=lambda: activity_figures(shown.activity, shown.over_time),
    )


def _trace_overlap(overlap: TraceOverlap) -> ResultSummary:
    from elbowroom.trace.overlap.figures import overlap_figures

    return ResultSummary(
        ", ".join(overlap.files),
        overlap.verdict,
        (*overlap.doubts, overlap.counts, *overlap.notes),
        draw=lambda: overlap_figures(overlap),
    )


def _overlap_comparison(compared: OverlapComparison) -> ResultSummary:
    files = (", ".join(one.files) for one in (compared.first, compared.second))
    return ResultSummary(
        " beside ".join(files), compared.verdict, (*compared.first.doubts, *compared.second.doubts)
    )


SUMMARIES: dict[str, Callable[[Any], ResultSummary]] = {
    "Advice": _advice,
    "Calibrated": _calibrated,
    "Changes": _changes,
    "Compared": _compared,
    "Diagnosis": _diagnosis,
    "Evaluation": _evaluation,
    "Explanation": _explanation,
    "GpuAdvice": _gpu_advice,
    "LoadPrediction": _load_prediction,
    "Model": _model,
    "OverlapComparison": _overlap_comparison,
    "Prediction": _prediction,
    "Profiled": _profiled,
    "RecordDocument": _recorded,
    "Run": _run,
    "ShownProfile": _profile,
    "Stat": _stat,
    "StudyDocument": _study,
    "TraceActivity": _activity,
    "TraceOverlap": _trace_overlap,
    "WhatIf": _what_if,
}
"""By type of result."""
