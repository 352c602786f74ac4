"""`elbowroom profile what-if`: a profiled program with fewer cores, data near the NIC, no overlap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.quantities import percent, percent_span, short_time
from elbowroom.verbs.declaration import Verb, argument, function_of, included, option
from elbowroom.verbs.run_options import ProfiledProgram

if TYPE_CHECKING:
    from elbowroom.advise.what_if import ChangeEffect, WhatIf
    from elbowroom.stats.interval import Interval
    from elbowroom.verbs.model_file import Model


class PredictChanges(Verb):
    """Predict the program's time with fewer cores, data near the NIC, no overlap.

    Each change by itself, with the 90 % interval of the model.
    """

    name = "profile what-if"
    fits = True

    directory: Path | str = argument(metavar="P")
    model: Model | Path | str | None = option(
        "Model of its machine; default: the newest in runs/.", "M.json", positional=True
    )
    fewer_cores: int | None = option(
        "Number of computing cores to remove on a node; default: 1.", "N", type=click.IntRange(min=1)
    )
    program: ProfiledProgram = included(
        ProfiledProgram,
        only=("cores", "comp_node", "comm_node", "communication_threads"),
        own={
            "cores": {"help": "Cores that compute on a node now."},
            "comp_node": {"help": "Present NUMA node of the computation's data."},
            "comm_node": {"help": "Present NUMA node of the message buffers."},
        },
    )
    curve: Path | str | None = option("NIC: a file that `nic measure -o` wrote; default: from the profile.")

    def do(self) -> WhatIf:
        """How the time of a profiled program changes with `fewer_cores` computing cores less (default 1),
        with its messages' data near the NIC, and without overlap; each by itself.

        `cores`, `comp_node`, `comm_node`: as it ran (default: a core for each rank of a node). `model`: of
        that machine, default the newest in runs/. UsageError for a model of another machine, or cores that
        it lacks.
        """
        from elbowroom.advise.what_if import WhatIf, changes_of, node_times, present_setup, usual_size
        from elbowroom.profile.analysis import analyse_nodes
        from elbowroom.profile.steps import find_steps

        read = analyse_nodes(
            self.directory, self.curve, communication_threads=self.program.communication_threads
        )
        analysis, inside = read.analysis, read.inside
        profile = analysis.profile
        size = usual_size(analysis)
        model = self._model(read.hosts, size)
        steps = find_steps(analysis, of_all_ranks=inside).steps
        times = node_times(analysis, *((steps.edges[0], steps.edges[-1]) if steps else ()))
        node = max(range(len(times)), key=lambda at: times[at].computation + times[at].network)
        ranks = profile.size if inside else int((profile.nodes_of == node).sum())
        cores = self.program.cores or ranks
        now = present_setup(cores, self.program.comp_node, self.program.comm_node, model.machine)
        known = size if model.document.message_size is not None else None
        return WhatIf(
            profile=str(self.directory),
            model=model.machine.name if model.path is None else str(model.path),
            steps=0 if steps is None else steps.count,
            now_s=times[node].total,
            node=profile.names[node],
            computation_s=times[node].computation,
            network_s=times[node].network,
            both_s=times[node].both,
            changes=changes_of(times[node], now, model.document, size=known, fewer_cores=self.fewer_cores),
        )

    def _model(self, hosts: tuple[str, ...], size: int) -> Model:
        from elbowroom.verbs.calibrate import check_machine, earlier_models
        from elbowroom.verbs.model_file import load_model

        if self.model is not None:
            model = load_model(self.model)
            check_machine(model, hosts, self.model)
            return model
        earlier = earlier_models(hosts, size)
        if earlier.newest is None:
            why = earlier.sentence()
            raise UsageError(
                f"no model of the profile's machine is in runs/{f' ({why})' if why else ''}",
                field="model",
                hint=f"measure one: elbowroom diagnose --profile {self.directory}; or name one: "
                "--model M.json",
            )
        return earlier.newest

    def print(self, result: WhatIf) -> None:
        """The program now, then a line for each change."""
        what = f"{result.steps} steps take " if result.steps else ""
        print_wrapped(
            f"{result.profile}: {what}{short_time(result.now_s)}; a rank of {result.node} computes "
            f"{short_time(result.computation_s)} and is {short_time(result.network_s)} on the network, "
            f"{short_time(result.both_s)} of that beside computation",
            style="bold",
        )
        print_wrapped(f"model: {result.model}")
        table = new_table("what if", ">then", ">change", "90 %")
        for change in result.changes:
            table.add_row(change.name, *_row(change))
        print_table(table)
        for change in result.changes:
            if change.reason:
                print_wrapped(f"n/a, {change.name}: {change.reason}")

    def answer(self, result: WhatIf) -> Answer:
        """The change that gains most, and how much of the time it can act on."""
        known = [(change.change.value, change) for change in result.changes if change.change is not None]
        why = (
            f"A rank of {result.node} computes {short_time(result.computation_s)} and is "
            f"{short_time(result.network_s)} on the network, {short_time(result.both_s)} of that at once."
        )
        following = command_line("diagnose", "--profile", self.directory, "--model", result.model)
        if not known:
            return Answer("None of the changes can be predicted.", why, following)
        best = min(known, key=lambda item: item[0])[1]
        change = best.change
        assert change is not None
        if change.value >= 0:
            text = f"No change gains: {best.name} costs least, {percent_span(*_ends(change))} more time."
            return Answer(text, why, following)
        sure = "" if change.high < 0 else "; that is not sure"
        gain = percent_span(-change.value, -change.high, -change.low)
        return Answer(f"The best change is {best.name}: it saves {gain} of the time{sure}.", why, following)


predict_changes = function_of(PredictChanges, "predict_changes")


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.value, interval.low, interval.high


def _row(change: ChangeEffect) -> tuple[str, str, str]:
    if change.then_s is None or change.change is None:
        return "n/a", "n/a", ""
    low, high = (percent(value, sign=True) for value in (change.change.low, change.change.high))
    return (
        short_time(change.then_s.value),
        percent(change.change.value, sign=True),
        f"{low} to {high}",
    )
