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
    from elbowroom.cli.answer import Answer
    from elbowroom.draw.figure import Figure
    from elbowroom.explain.explanation import Explanation
    from elbowroom.models.load import LoadPrediction, PredictedBandwidths, Prediction
    from elbowroom.stats.interval import Interval
    from elbowroom.studies.document import StudyDocument
    from elbowroom.trace.documents import Stat
    from elbowroom.trace.overlap.document import OverlapComparison, TraceOverlap
    from elbowroom.verbs.calibrate import Calibrated
    from elbowroom.verbs.compare import Changes
    from elbowroom.verbs.diagnosis_document import Diagnosis
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
    title = f"{run.manifest.plan['name']} on {machine_line(run.machine)}; {state}"
    return _answered(answer, title, others[:1], draw)


def _answered(
    answer: Answer, title: str, facts: Sequence[str] = (), draw: Callable[[], Sequence[Figure]] = tuple
) -> ResultSummary:
    """The answer of the command whose result it is, which the terminal prints."""
    return ResultSummary(title, answer.verdict, (answer.why, *facts), answer.next, draw)


def _model(model: Model) -> ResultSummary:
    from elbowroom.models.registry import fitted_models
    from elbowroom.verbs.model_answers import fit_answer
    from elbowroom.verbs.model_tables import calibration_line, shape_line

    def draw() -> Sequence[Figure]:
        fitted = fitted_models(model.document)
        return model.panels(model.curves(comp_node=0, comm_node=0)) if fitted else ()

    answer = fit_answer(model)
    limits = [limit for limit in model.validity if limit not in answer.why]
    facts = (f"{calibration_line(model.document.calibration)}.", *limits)
    return _answered(answer, shape_line(model.machine), facts, draw)


def _bandwidths(title: str, predicted: PredictedBandwidths) -> ResultSummary:
    from elbowroom.verbs.model_answers import loss_words

    sides = (
        ("communication", predicted.comm_alone, predicted.comm_together),
        ("computation", predicted.comp_alone, predicted.comp_together),
    )
    verdict = f"{loss_words(predicted)}."
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
    from elbowroom.verbs.model_answers import evaluation_answer

    def draw() -> Sequence[Figure]:
        model = evaluation.model
        if not isinstance(evaluation.table, ErrorTable):
            return ()
        return model.panels(model.curves(comp_node=0, comm_node=0), evaluation.run)

    title = f"{evaluation.model.machine.name}: the model beside {evaluation.run.path}"
    return _answered(evaluation_answer(evaluation), title, evaluation.notes, draw)


def _calibrated(done: Calibrated) -> ResultSummary:
    from elbowroom.verbs.calibrate import Calibrate
    from elbowroom.verbs.run_tables import machine_line

    of_model = () if done.model is None else (f"model: {done.model.path}",)
    return _answered(
        Calibrate().answer(done),
        f"Calibration of {machine_line(done.run.machine)}",
        (*of_model, f"run: {done.run.path}", *done.unknown),
        tuple if done.model is None else _model(done.model).draw,
    )


def _advice(advice: Advice) -> ResultSummary:
    from elbowroom.verbs.advise import map_figures
    from elbowroom.verbs.advise_tables import advice_answer
    from elbowroom.verbs.model_tables import shape_line

    answer = advice_answer(advice, advice.model, "")._replace(next="")  # the job may have no file
    return _answered(
        answer,
        f"{advice.job.name} on {shape_line(advice.machine)}; {plural(advice.considered, 'setup')} compared",
        (
            *(choice.reason for choice in advice.changes if choice.reason != answer.why),
            f"A step takes {short_time(advice.now.total.value)} now.",
            *advice.notes,
        ),
        lambda: map_figures(advice),
    )


def _gpu_advice(advice: GpuAdvice) -> ResultSummary:
    return ResultSummary(
        f"{advice.device or 'accelerator'}: {plural(len(advice.configurations), 'setup')} compared",
        advice.sentence,
        [answer.reason for answer in advice.answers],
    )


def _compared(compared: Compared) -> ResultSummary:
    from elbowroom.verbs.advise_tables import compared_answer

    return _answered(compared_answer(compared), "Advice, measured")


def _what_if(what_if: WhatIf) -> ResultSummary:
    from elbowroom.verbs.profile_what_if import PredictChanges

    return _answered(
        PredictChanges(directory=what_if.profile).answer(what_if),
        f"{what_if.profile} with the model {what_if.model}; now it takes {short_time(what_if.now_s)}",
        [
            f"{change.name}: {_gain(change.change)}" if change.change is not None else f"{change.name}: n/a"
            for change in what_if.changes
        ],
    )


def _gain(change: Interval) -> str:
    values = (percent(value, sign=True) for value in (change.value, change.low, change.high))
    return with_span(*values)


def _diagnosis(diagnosis: Diagnosis) -> ResultSummary:
    from elbowroom.verbs.diagnosis_text import diagnosis_answer, steps_sentence

    answer = diagnosis_answer(diagnosis)
    model = "" if diagnosis.model is None else f" with the model {diagnosis.model}"
    facts = (steps_sentence(diagnosis), *diagnosis.notes)
    return _answered(
        answer,
        f"{diagnosis.profile}{model}",
        [fact for fact in facts if fact not in answer.verdict + answer.why],
        tuple if diagnosis.advice is None else _advice(diagnosis.advice).draw,
    )


def _explanation(explanation: Explanation) -> ResultSummary:
    from elbowroom.verbs.explain import Explain, explanation_figures

    answer = Explain(runs=explanation.runs).answer(explanation)
    virtual = " (virtual machine)" if explanation.virtual else ""
    others = [statement.text for statement in explanation.statements if answer.why not in statement.text]
    return _answered(
        answer,
        f"{explanation.machine}{virtual}: where the losses come from",
        others,
        lambda: explanation_figures(explanation),
    )


def _changes(changes: Changes) -> ResultSummary:
    from elbowroom.results.change_sentence import sentence

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
    from elbowroom.verbs.study import StudyPaper, warnings

    answer = StudyPaper(paper=study.study).answer(study)
    return _answered(answer, study.paper, (*warnings(study), f"report: {study.report}"))


def _profile(profile: ShownProfile) -> ResultSummary:
    from elbowroom.profile.figures import profile_figures
    from elbowroom.verbs.profile import ShowProfile

    folder = profile.analysis.profile.folder
    answer = ShowProfile(directory=folder).answer(profile)
    others = [sentence for sentence, _ in profile.sentences() if sentence not in answer[:2]]
    return _answered(answer, str(folder), others, lambda: profile_figures(profile.analysis, profile.summary))


def _profiled(profiled: Profiled) -> ResultSummary:
    from elbowroom.verbs.profile import RecordProfile

    answer = RecordProfile(command=()).answer(profiled)
    return _answered(answer, f"A profile in {profiled.directory}", profiled.document.notes)


def _stat(stat: Stat) -> ResultSummary:
    from elbowroom.trace.activity_figures import trace_figures
    from elbowroom.verbs.trace import CountEvents

    answer = CountEvents(directory="").answer(stat)._replace(next="")  # it does not know its folder
    title = f"A trace of {plural(len(stat.ranks), 'rank')}"
    return _answered(answer, title, (*stat.doubts, *stat.warnings), lambda: trace_figures(stat))


def _recorded(done: RecordDocument) -> ResultSummary:
    from elbowroom.verbs.trace_record import RecordTrace

    return _answered(
        RecordTrace(command=()).answer(done),
        f"A trace in {done.directory}; the program ran {number(done.seconds, 3)} s",
        done.notes,
        tuple if done.stat is None else _stat(done.stat).draw,
    )


def _activity(shown: TraceActivity) -> ResultSummary:
    from elbowroom.trace.activity_figures import activity_figures
    from elbowroom.verbs.trace import ShowActivity

    return _answered(
        ShowActivity(directory="").answer(shown)._replace(next=""),  # it does not know its folder
        "Tasks, workers and messages of a trace",
        () if shown.trusted else ("The times of this trace cannot be trusted.",),
        lambda: activity_figures(shown.activity, shown.over_time),
    )


def _trace_overlap(overlap: TraceOverlap) -> ResultSummary:
    from elbowroom.trace.overlap.figures import overlap_figures
    from elbowroom.verbs.trace_overlap import ReportOverlap

    return _answered(
        ReportOverlap(files=overlap.files).answer(overlap),
        ", ".join(overlap.files),
        (*overlap.doubts, overlap.counts, *overlap.notes),
        lambda: overlap_figures(overlap),
    )


def _overlap_comparison(compared: OverlapComparison) -> ResultSummary:
    from elbowroom.verbs.trace_overlap import ReportOverlap

    both = (compared.first, compared.second)
    request = ReportOverlap(files=[file for one in both for file in one.files], compare=True)
    title = " beside ".join(", ".join(one.files) for one in both)
    return _answered(request.answer(compared), title, [doubt for one in both for doubt in one.doubts])


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
