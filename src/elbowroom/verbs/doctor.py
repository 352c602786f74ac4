"""`elbowroom doctor`: what helps and what spoils measurements on this machine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import console, print_wrapped, screen_width, styled
from elbowroom.launch.mpi import find_mpi
from elbowroom.machine.doctor import Diagnoses, DoctorLine, diagnose, listed
from elbowroom.quantities import plural
from elbowroom.verbs.declaration import Verb, function_of, included
from elbowroom.verbs.run_options import Launching


class Doctor(Verb):
    """Check this machine: each check is ok, warn or n/a, with a hint."""

    name = "doctor"

    launching: Launching = included(Launching, only=("mpi",))

    def do(self) -> list[DoctorLine]:
        """Each thing that a measurement depends on: ok, warn or n/a, with a hint.

        UsageError where the MPI that is named does not exist.
        """
        from elbowroom.measure.doctor_facts import gather, plugin_problems

        mpi = self.launching.mpi
        if mpi is not None:
            find_mpi(mpi)
        return [*diagnose(gather(mpi=mpi)), *plugin_problems()]

    def document(self, result: list[DoctorLine]) -> Diagnoses:
        return Diagnoses(checks=tuple(result))

    def print(self, result: list[DoctorLine]) -> None:
        """One line for each thing that is checked, with its hint below."""
        print_checks(listed(result))

    def answer(self, result: list[DoctorLine]) -> Answer:
        """How many checks warn, the first of them, and the shortest plan: without MPI a virtual one."""
        warned = [check for check in result if check.status == "warn"]
        ok = sum(check.status == "ok" for check in result)
        first = next(iter(warned), None)
        verdict = f"{ok} of {plural(len(result), 'check')} are ok, {len(warned)} warn"
        measures = not any(check.name in NEEDED for check in warned)
        names = ", ".join(check.name for check in warned)
        return Answer(
            f"{verdict}: {names}." if warned else f"{verdict}: this machine can measure.",
            "Nothing was found that spoils measurements."
            if first is None
            else f"{first.name}: {first.text.rstrip('.')}. Hint: {first.hint.rstrip('.')}.",
            command_line("run", "quick", *(() if measures else ("--machine", "henri"))),
            "yellow" if warned else "green",
        )


NEEDED = ("mpi", "launcher", "probe")
"""Checks without which nothing is measured here."""


def print_checks(checks: Sequence[DoctorLine]) -> None:
    """One line for each check, with its hint below."""
    styles = {"ok": "green", "warn": "yellow", "n/a": "dim"}
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        head = f"{check.status:<5}{check.name:<{width}}  "
        lines = textwrap.wrap(check.text, screen_width() - len(head), break_on_hyphens=False) or [""]
        first = styled(head + lines[0])
        first.stylize(styles[check.status], 0, 4)
        console().print(first, soft_wrap=True)
        for line in lines[1:]:
            console().print(styled(" " * len(head) + line), soft_wrap=True)
        if check.hint:
            print_wrapped(f"hint: {check.hint}", indent=" " * len(head))


doctor = function_of(Doctor)
