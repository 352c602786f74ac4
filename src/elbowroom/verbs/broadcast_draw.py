"""`elbowroom broadcast draw`: who sends to whom."""

from __future__ import annotations

from pathlib import Path

from elbowroom.broadcast.drawn import (
    ROOT,
    BroadcastTree,
    TreeMessage,
    ranks_by_priority,
    tree_rows,
    tree_svg,
)
from elbowroom.broadcast.simulated import MOST_RECIPIENTS, check_tree, parse_priorities
from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.quantities import plural
from elbowroom.verbs.declaration import Verb, option
from elbowroom.verbs.run_options import out_option

MOST_DRAWN = 500
"""Recipients of a picture: a larger one cannot be read."""


class DrawBroadcast(Verb):
    """Draw the tree of a broadcast: who sends to whom, and in which step.

    The ranks find it as the library does. In a step, each rank that has the data sends one message.
    """

    name = "broadcast draw"
    has_tables = True
    saves = True

    tree: str = option(
        "flat, chain, binary, binomial, 4-ary, 8-nomial; with delegate- or split3- before it.",
        "KIND",
        default="binomial",
    )
    recipients: int = option("Ranks that receive; rank 0 is the root.", default=6)
    priorities: str = option(
        "Of recipients 1, 2, ...: rising, equal, or numbers; the highest is served first.",
        "LIST",
        default="equal",
    )
    out: Path | str | None = out_option(Output(".svg"), "Write a picture: a row for each step.")

    def do(self) -> BroadcastTree:
        """The messages of the tree."""
        from elbowroom.broadcast.network import Network
        from elbowroom.launch import executables

        check_tree(self.tree)
        if self.tree in ("two", "auto"):
            raise UsageError(
                "is not one tree", field="tree", value=self.tree, hint="give binary, binomial or another"
            )
        most = MOST_RECIPIENTS if self.out is None else MOST_DRAWN
        if not 1 <= self.recipients <= most:
            raise UsageError(
                f"is not between 1 and {most}",
                field="recipients",
                value=self.recipients,
                hint="for example 6",
            )
        priorities = parse_priorities(self.priorities, self.recipients)
        if priorities and len(priorities) != self.recipients:
            raise UsageError(
                f"are {len(priorities)}, and there are {plural(self.recipients, 'recipient')}",
                field="priorities",
                value=self.priorities,
                hint="give one for each recipient",
            )
        case = executables.BroadcastCase(size=1, recipients=self.recipients, tree=self.tree)
        network = Network(latency=0.0, bandwidth=1.0)  # of any speed: only the shape is asked for
        (shape,) = executables.predict_broadcasts(network, [case], edges=True)
        ranks = [*ranks_by_priority(self.recipients, priorities), ROOT]  # the last is that of place -1
        messages = tuple(
            TreeMessage(sender=ranks[sender], receiver=ranks[receiver], depth=depth, step=step)
            for sender, receiver, depth, step in shape.edges
        )
        return BroadcastTree(
            tree=shape.tree,
            recipients=self.recipients,
            steps=max(message.step for message in messages),
            depth=max(message.depth for message in messages),
            priorities=priorities,
            messages=messages,
        )

    def print(self, result: BroadcastTree) -> None:
        """A row for each rank, below the one that sends to it."""
        table = new_table("rank", ">step", ">level")
        for text, message in tree_rows(result):
            table.add_row(text, *(str(n) for n in ((message.step, message.depth) if message else (0, 0))))
        print_table(table)

    def answer(self, result: BroadcastTree) -> Answer:
        """How many steps and levels the tree has."""
        busiest = max(len(sent) for sent in result.children().values())
        return Answer(
            f"The tree {result.tree} reaches {plural(result.recipients, 'recipient')} in "
            f"{plural(result.steps, 'step')}.",
            f"It has {plural(result.depth, 'level')}; a rank sends at most {plural(busiest, 'message')}.",
            command_line(
                "broadcast", "simulate", "--tree", result.tree, "--recipients", result.recipients
            ),
        )  # fmt: skip


def save(tree: BroadcastTree, path: Path) -> None:
    """Draws a tree as .svg."""
    write_atomically(path, tree_svg(tree).encode())
