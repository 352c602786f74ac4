"""`elbowroom compare`: what changed from a run to others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom import display
from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped, styled
from elbowroom.cli.tables import ShownTable, most_telling, new_table, print_left_out, print_table
from elbowroom.errors import UsageError
from elbowroom.frames import Frame, frame
from elbowroom.quantities import number, parse_percent, plural
from elbowroom.results.change_sentence import sentence
from elbowroom.verbs.bundles import BundleComparison, compare_bundles, is_bundle
from elbowroom.verbs.declaration import Verb, argument, function_of, option

if TYPE_CHECKING:
    from elbowroom.logs.comparison import TableComparison
    from elbowroom.results.comparison import Change, Comparison
    from elbowroom.verbs.run_folder import Run


def _parse_percent(text: str, field: str) -> float:
    """The share that `5%` or `5` says. UsageError where it says none."""
    value = parse_percent(text, field)
    if not 0 <= value < 1:
        raise UsageError("is not a percentage", field=field, value=text, hint="0 to less than 100, as in 5%")
    return value


class Changes(list["Change"]):
    """Changes between runs; those below the share `at_least` are not significant."""

    def __init__(self, changes: Sequence[Change], at_least: float) -> None:
        super().__init__(changes)
        self.at_least = at_least

    def __repr__(self) -> str:
        significant = sum(change.significant for change in self)
        return f"Changes(values={len(self)}, significant={significant}, at_least={self.at_least})"

    __str__, _repr_html_ = display.text, display.html

    def frame(self) -> Frame:
        """The changes, a row each."""
        return frame(self)


class CompareRuns(Verb):
    """Compare runs with run A: what changed, by how much, and whether it improved.

    Also compares two folders of imported logs, and two bundles of a study (`study --bundle`).
    """

    name = "compare"
    has_tables = True

    a: Run | Path | str = argument(metavar="A")
    others: tuple[Run | Path | str, ...] = argument(metavar="B...", nargs=-1, spread=True)
    at_least: float = option(
        "Smallest change that is reported.", "PERCENT", default="1%", parse=_parse_percent
    )
    fail_above: float | None = option(
        "Exit with code 1 if a value got worse by more than this.",
        "PERCENT",
        parse=_parse_percent,
        in_python=False,
    )
    every: bool = option("Also print values that did not change.", spelled="--all", in_python=False)

    @cached_property
    def runs(self) -> list[Run]:
        """All of them, run A first."""
        from elbowroom.verbs.run_folder import open

        return [open(run) for run in (self.a, *self.others)]

    def do(self) -> Changes | TableComparison | BundleComparison:
        """Changes from run `a` to each other run of all values both have; those below the share `at_least`
        are never significant; of two folders of imported logs those of their tables, of two bundles of a
        study those of their runs and verdicts. UsageError where a run has nothing in common with `a`.
        """
        from elbowroom.results.comparison import compare

        if any(is_bundle(one) for one in (self.a, *self.others)):
            if len(self.others) != 1 or not all(is_bundle(one) for one in (self.a, *self.others)):
                hint = "give two files of `study --bundle`"
                raise UsageError("bundles are compared two by two", field="run", value=str(self.a), hint=hint)
            return compare_bundles(Path(str(self.a)), Path(str(self.others[0])), self.at_least)
        if (tables := self._compared_tables()) is not None:
            return tables
        first, *rest = self.runs
        ids = {point.id for point in first.points()}
        for run in rest:
            if not ids & {point.id for point in run.points()}:
                raise UsageError(
                    f"has no point in common with {first.path}",
                    field="run",
                    value=str(run.path),
                    hint="compare runs of one plan, of the same kernels, cores and sizes",
                )
        changes = compare(first.measured(), *(run.measured() for run in rest), at_least=self.at_least)
        return Changes(changes, self.at_least)

    def _compared_tables(self) -> TableComparison | None:
        """The comparison of two folders of imported logs; None: none is one. UsageError for one of them."""
        from elbowroom.logs.comparison import compare_tables
        from elbowroom.store.tables import has_tables, read_tables

        paths = [one for one in (self.a, *self.others) if isinstance(one, str | Path)]
        imported = [path for path in paths if has_tables(Path(path))]
        if not imported:
            return None
        if len(self.others) != 1 or len(imported) != 2:
            other = imported[0]
            what = "holds tables of logs, which are only compared with one other folder of tables"
            hint = "import the other log as well, and compare both folders"
            raise UsageError(what, field="run", value=str(other), hint=hint)
        first, second = ((str(path), read_tables(Path(path)).tables) for path in paths)
        return compare_tables(first, second, self.at_least)

    def document(
        self, result: Changes | TableComparison | BundleComparison
    ) -> Comparison | TableComparison | BundleComparison:
        """The runs with their changes, and the answer in a sentence."""
        if not isinstance(result, Changes):
            return result
        from elbowroom.results.comparison import ComparedHead, Comparison

        _warn_of_untrusted(self.runs)
        a, b, *others = (
            ComparedHead(
                run=str(run.path),
                trusted=run.verdict.trusted,
                virtual=run.machine.virtual,
                grade=run.verdict.grade,
            )
            for run in self.runs
        )
        return Comparison(
            a=a,
            b=b,
            others=tuple(others),
            at_least=self.at_least,
            sentence=sentence(result, self.at_least),
            changes=tuple(result),
            significant=sum(change.significant for change in result),
        )

    def print(self, result: Changes | TableComparison | BundleComparison) -> None:
        """The sentence of each run against the first, then what changed by point."""
        if isinstance(result, BundleComparison):
            _print_bundles(result)
            return
        if not isinstance(result, Changes):
            _print_tables(result, self.every)
            return
        _warn_of_untrusted(self.runs)
        print_compare(self.runs, result, self.at_least, self.every)

    def answer(self, result: Changes | TableComparison | BundleComparison) -> Answer:
        """How many values changed, what counts as a change, and the run with the largest one."""
        if isinstance(result, BundleComparison):
            return Answer(
                result.sentence,
                f"{plural(len(result.conditions), 'thing')} that they were made with differ.",
                command_line("study", result.study, "--dry-run"),
            )
        if not isinstance(result, Changes):
            return Answer(
                result.sentence,
                "A change counts if its 95 % interval over repetitions (tables of one test in a folder) "
                f"excludes 0, and it is at least {100 * self.at_least:.3g} %.",
                command_line("show", result.b),
            )
        significant = [change for change in result if change.significant]
        largest = max(significant, key=lambda change: abs(change.change), default=None)
        run = self.runs[1 if largest is None else largest.run]
        worse = largest is not None and largest.better == "a"
        return Answer(
            sentence(result, self.at_least),
            "A change counts if its 95 % interval excludes 0 at a false discovery rate of 5 %, and it is at "
            f"least {100 * self.at_least:.3g} %.",
            command_line("explain" if worse and _has_kernels(run) else "show", run.path),
            "red" if worse else "",
        )

    def exit_code(self, result: Changes | TableComparison | BundleComparison) -> int:
        """1 where a value got worse by more than `fail_above`; bundles are not judged so."""
        from elbowroom.results.comparison import worse

        if isinstance(result, BundleComparison):
            return 0
        if not isinstance(result, Changes):
            worst = max((abs(one.change or 0) for one in result.changes if one.better == "a"), default=0.0)
            return int(self.fail_above is not None and worst > self.fail_above)
        return int(self.fail_above is not None and bool(worse(result, self.fail_above)))


compare = function_of(CompareRuns)


def _has_kernels(run: Run) -> bool:
    """Whether `explain` can take the run: cores compute beside messages."""
    return any(point.comp.kept is not None and point.comm.kept is not None for point in run.points())


def _warn_of_untrusted(runs: Sequence[Run]) -> None:
    """One line for each reason, with all runs that it holds for."""
    reasons: dict[str, dict[str, None]] = {}
    for run in runs:
        if not run.verdict.trusted:
            reasons.setdefault(run.verdict.reasons[0], {})[str(run.path)] = None
    for reason, paths in reasons.items():
        verb = "are" if len(paths) > 1 else "is"
        click.echo(f"warning: {', '.join(paths)} {verb} not trusted: {reason}", err=True)


def print_compare(runs: Sequence[Run], changes: Sequence[Change], at_least: float, every: bool) -> None:
    """The sentence of each run against the first, then what changed by point; all values with `every`."""
    print_wrapped(f"a = {runs[0].path}{' (virtual)' * runs[0].machine.virtual}")
    for place, run in enumerate(runs[1:], 1):
        own = [change for change in changes if change.run == place]
        shown = [change for change in own if every or change.significant]
        print_wrapped(f"b = {run.path}{' (virtual)' * run.machine.virtual}")
        if len(runs) > 2:
            print_wrapped(sentence(own, at_least), style="bold")
        count, shown = len(shown), most_telling(shown, lambda change: abs(change.change))
        for point, members in itertools.groupby(shown, key=lambda change: change.point):
            print()
            print_wrapped(point, style="bold")
            print_table(_changes_table(list(members)))
        if shown:
            print()
        print_left_out(count - len(shown), count, "the largest changes,")
    print_wrapped("Less is better for durations (us), more for everything else.")


def _print_tables(compared: TableComparison, every: bool) -> None:
    """The largest differences; all values with `every`."""
    shown = [one for one in compared.changes if every or one.significant or not compared.significant]
    kept = most_telling(shown, lambda one: abs(one.change or 0.0))
    table = new_table("~value", ">a", ">b", ">change", "interval", "")
    for one in kept:
        change = "n/a" if one.change is None else f"{one.change:+.1%}"
        ends = "" if one.low is None else f"{one.low:+.1%}..{one.high:+.1%}"
        better = {"a": "a better", "b": "b better"}.get(one.better, "")
        name = f"{one.column} ({one.unit}) of {one.name}"
        table.add_row(name, number(one.a, 4), number(one.b, 4), change, ends, better)
    print_wrapped(f"a = {compared.a}, b = {compared.b}")
    print_table(table)
    print_left_out(len(shown) - len(kept), len(shown), "the largest changes,")
    for count, only in ((compared.only_a, "a"), (compared.only_b, "b")):
        if count:
            print_wrapped(f"{plural(count, 'value')} only in {only}.")


def _print_bundles(compared: BundleComparison) -> None:
    """What the bundles were made with, then verdicts and runs that changed."""
    print_wrapped(f"a = {compared.a}, b = {compared.b}: the study {compared.study}")
    for difference in compared.conditions:
        print_wrapped(f"{difference.what}: {difference.a or 'n/a'}, then {difference.b or 'n/a'}")
    for verdict in compared.verdicts:
        print_wrapped(f"{verdict.label}, {verdict.a}, then {verdict.b}: {verdict.text}", style="bold")
    for run in compared.runs:
        print_wrapped(f"{run.run}: {run.sentence}")
    for names, only in ((compared.only_a, "a"), (compared.only_b, "b")):
        if names:
            print_wrapped(f"Runs only in {only}: {', '.join(names)}.")


def _changes_table(changes: Sequence[Change]) -> ShownTable:
    """Cells are padded, so that the columns of all points line up down the page."""
    table = new_table("", "", "", ">", ">", ">", "", "", with_heads=False)
    for change in changes:
        unit = change.metric.partition("(")[2].rstrip(")")
        table.add_row(
            f"  {change.side}".ljust(6),
            change.phase.ljust(8),
            unit.ljust(7),
            number(change.a, 3).rjust(8),
            number(change.b, 3).rjust(8),
            styled(f"{change.change:+.1%}".rjust(8), "bold" if change.significant else ""),
            f"{change.low:+.1%}..{change.high:+.1%}".ljust(18),
            {"a": "a better", "b": "b better"}.get(change.better, "same"),
        )
    return table
