"""The tree of a broadcast as text and as a picture, as in Figs. 4.1 and 4.2 of Swartvagher 2022."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html import escape

import msgspec

ROOT = 0
"""The rank of the root; recipients are ranks 1 and up."""


class TreeMessage(msgspec.Struct, frozen=True, kw_only=True, rename={"sender": "from", "receiver": "to"}):
    """From rank to rank. `depth`: how many messages away the root is. `step`: when it is sent, where a rank
    sends one message at a time and each takes a step.
    """

    sender: int
    receiver: int
    depth: int
    step: int


class BroadcastTree(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends to whom, in the order of depth. `steps` and `depth`: the largest of any message; `priorities`
    of recipients 1, 2, ..., empty where all are alike.
    """

    schema: str = "elbowroom/broadcast-tree"
    version: int = 1
    tree: str
    recipients: int
    steps: int
    depth: int
    priorities: tuple[int, ...] = ()
    messages: tuple[TreeMessage, ...]

    def children(self) -> dict[int, list[TreeMessage]]:
        """What each rank sends, in its order."""
        sent: dict[int, list[TreeMessage]] = defaultdict(list)
        for message in self.messages:
            sent[message.sender].append(message)
        return sent


def ranks_by_priority(recipients: int, priorities: tuple[int, ...]) -> list[int]:
    """Ranks of the recipients, those of higher priority first, as the library sorts them for the root 0."""
    ranks = range(1, recipients + 1)
    return sorted(ranks, key=lambda rank: -priorities[rank - 1]) if priorities else list(ranks)


def tree_rows(tree: BroadcastTree) -> Iterator[tuple[str, TreeMessage | None]]:
    """A row for each rank, below the one that sends to it: `├─ 2` and the message that it gets; None for the
    root.
    """
    sent = tree.children()
    yield str(ROOT), None
    waiting = _siblings(sent[ROOT], "")
    while waiting:
        message, before, last = waiting.pop()
        yield f"{before}{'└─' if last else '├─'} {message.receiver}", message
        waiting += _siblings(sent[message.receiver], before + ("   " if last else "│  "))


def _siblings(messages: list[TreeMessage], before: str) -> list[tuple[TreeMessage, str, bool]]:
    """Those that one rank sends, the last first; whether there is a later one."""
    return [(message, before, message is messages[-1]) for message in reversed(messages)]


ACROSS, DOWN, RADIUS = 44, 64, 14
"""Units of the picture between two ranks and two steps, and of a rank."""


def tree_svg(tree: BroadcastTree) -> str:
    """The picture: a row for each step, arrows from sender to receiver, the data's way from top to bottom."""
    sent = tree.children()
    column = _columns(sent)
    step = {ROOT: 0} | {message.receiver: message.step for message in tree.messages}
    place = {rank: (60 + ACROSS * column[rank], 30 + DOWN * step[rank]) for rank in step}
    width, height = 90 + ACROSS * max(column.values()), 60 + DOWN * tree.steps
    title = f"{tree.tree}: {tree.recipients} recipients, {tree.steps} steps"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="sans-serif" font-size="12" '
        'text-anchor="middle">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
    ]
    parts.append('<text x="20" y="34" fill="#59636e">step</text>')
    for row in range(1, tree.steps + 1):
        parts.append(f'<text x="20" y="{34 + DOWN * row}" fill="#59636e">{row}</text>')
    for message in tree.messages:
        (x1, y1), (x2, y2) = place[message.sender], place[message.receiver]
        parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#59636e"/>')
    for rank, (x, y) in place.items():
        parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="#fff" stroke="#1b1f24"/>'
            f'<text x="{x:g}" y="{y + 4:g}">{rank}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _columns(sent: dict[int, list[TreeMessage]]) -> dict[int, float]:
    """Where each rank stands: leaves side by side, others amid those they send to."""
    column: dict[int, float] = {}
    waiting, order = [ROOT], []
    while waiting:
        rank = waiting.pop()
        order.append(rank)
        waiting += [message.receiver for message in reversed(sent[rank])]
    leaves = 0
    for rank in order:
        if not sent[rank]:
            column[rank], leaves = float(leaves), leaves + 1
    for rank in reversed(order):
        if sent[rank]:
            ends = [column[message.receiver] for message in sent[rank]]
            column[rank] = (min(ends) + max(ends)) / 2
    return column
