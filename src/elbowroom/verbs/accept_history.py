"""`elbowroom accept history`: nodes over months, and which became slower."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.quantities import number, percent, plural
from elbowroom.verbs.declaration import Verb, argument, function_of, option

if TYPE_CHECKING:
    from elbowroom.accept.history import HistoryDocument


class AcceptHistory(Verb):
    """Say which nodes became slower, from the runs of accept in a folder.

    A node has changed if it is worse against the other nodes of its runs from a date on. The chance that any
    node of a healthy history is said to have changed is at most 1 %.
    """

    name = "accept history"
    has_tables = True

    folder: Path | str = argument(metavar="DIR")
    of: str | None = option("Show all values of a node, too.", "NODE")

    def do(self) -> HistoryDocument:
        """Reads all runs below `folder`. UsageError where there are none, or a table is damaged."""
        from elbowroom.accept.history import history_of

        return history_of(Path(self.folder), self.of)

    def print(self, result: HistoryDocument) -> None:
        """The nodes that changed, and the values of one."""
        print_wrapped(
            f"{plural(result.runs, 'run')} of {plural(result.nodes, 'node')}, "
            f"{result.first} to {result.last}",
            style="bold",
        )
        if result.changes:
            table = new_table("node", "quantity", "since", ">loss", ">runs before", ">since", ">chance")
            for one in result.changes:
                table.add_row(
                    one.node,
                    one.quantity,
                    f"{one.date:%Y-%m-%d}",
                    percent(one.loss),
                    str(one.before),
                    str(one.since),
                    number(one.chance),
                )
            print_table(table, "the surest")
        if result.rows:
            table = new_table("date", "quantity", ">value", "unit", ">of values")
            for row in result.rows:
                table.add_row(
                    f"{row.date:%Y-%m-%d}", row.quantity, number(row.value), row.unit, str(row.values)
                )
            print_table(table)

    def answer(self, result: HistoryDocument) -> Answer:
        """The surest change."""
        if not result.changes:
            return Answer(
                f"None of {plural(result.nodes, 'node')} became slower.",
                "A change shows from four runs on each side on; of many nodes it takes more.",
                command_line("help", "accept"),
                "green",
            )
        worst = result.changes[0]
        count = len({one.node for one in result.changes})
        return Answer(
            f"{count} of {plural(result.nodes, 'node')} became slower.",
            f"{worst.node} loses {percent(worst.loss)} of {worst.quantity} since {worst.date:%Y-%m-%d}.",
            self.again(of=worst.node),
            "red",
        )


accept_history = function_of(AcceptHistory, "accept_history")
