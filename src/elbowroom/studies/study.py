"""What a study of a paper is: the runs behind its figures and tables, and the statements that they test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from elbowroom.draw.figure import Figure, TextTable
from elbowroom.machine.topology import Machine
from elbowroom.results.judgement import Judgement
from elbowroom.studies.evidence import Evidence

Need = Callable[[Machine], str]
"""Why a machine lacks something; empty where it has it."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the results say of a statement: the judgement, our values, and the reason where one is needed."""

    judgement: Judgement
    ours: str = ""
    why: str = ""


Judge = Callable[[Evidence], Outcome]


def outcome(judgement: Judgement, ours: str, undecided: str) -> Outcome:
    """The outcome with our values, and the reason of one that is undecided."""
    return Outcome(judgement=judgement, ours=ours, why=undecided if judgement == "undecided" else "")


@dataclass(frozen=True)
class Measurement:
    """A run of a study: a named plan with the paper's axes.

    `settings` are keys of the plan as `run --set` takes them, `scaled` those that depend on the machine, and
    `quick` those that replace them in a quick study. `hosts`: on how many hosts it is made, each time as a
    run of its own; their results are joined. `needs`: what nothing can be measured without.
    """

    name: str
    plan: str
    settings: Mapping[str, str] = field(default_factory=dict)
    quick: Mapping[str, str] = field(default_factory=dict)
    scaled: Callable[[Machine], Mapping[str, str]] = lambda _: {}
    hosts: Callable[[Machine], Sequence[int]] = lambda machine: (machine.hosts,)
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Statement:
    """A statement of a paper. `text` completes `the paper states that ...`; `paper` are its values, and
    `criterion` says when it is confirmed and when refuted. `needs`: what it cannot be judged without, though
    values may be measured; `observes`: what must be observed to judge it (`frequency`, `counters`).
    """

    text: str
    judge: Judge
    criterion: str
    section: str = ""
    paper: str = ""
    needs: tuple[Need, ...] = ()
    observes: str = ""


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper, in the paper's order. `runs`: names of the measurements it is made from.

    `instead`: what shows it, where no plan does: another command, or the reason why nothing can. `differs`:
    what is made in another way than in the paper. `needs`: what it cannot be drawn without, though its runs
    are made, and `observes` what must be observed for it; `absent`: why it may be missing though its run is
    there. `section` and `judged_with`: section and needs of those statements that name none.
    """

    label: str
    title: str
    runs: tuple[str, ...] = ()
    draw: Callable[[Evidence], Sequence[Figure]] = lambda _: ()
    tables: Callable[[Evidence], Sequence[TextTable]] = lambda _: ()
    statements: tuple[Statement, ...] = ()
    instead: str = ""
    differs: str = ""
    needs: tuple[Need, ...] = ()
    observes: str = ""
    absent: str = ""
    section: str = ""
    judged_with: tuple[Need, ...] = ()

    def __post_init__(self) -> None:
        statements = tuple(
            replace(item, section=item.section or self.section, needs=item.needs or self.judged_with)
            for item in self.statements
        )
        object.__setattr__(self, "statements", statements)


@dataclass(frozen=True)
class Study:
    """A paper: its runs in the order in which they are measured, and its figures and tables in its own
    order. `page`: the page of the documentation that compares it with ours.
    """

    name: str
    paper: str
    measurements: tuple[Measurement, ...]
    exhibits: tuple[Exhibit, ...]
    page: str

    def __post_init__(self) -> None:
        names = {item.name for item in self.measurements}
        for exhibit in self.exhibits:
            if missing := set(exhibit.runs) - names:
                raise ValueError(f"{exhibit.label} of {self.name} uses runs that it does not have: {missing}")
