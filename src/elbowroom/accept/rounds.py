"""Who exchanges messages with whom: rounds in which each node has one partner.

Where the switches are known, the rounds visit the pairs of switches evenly (a round-robin tournament of the
switches, a different one for each place in a switch), so that a bad cable is met: 10 rounds of 313 switches
with 32 nodes meet each pair of switches once. Two of ten rounds are inside the switches.
"""

from __future__ import annotations

import numpy as np

from elbowroom.accept.readings import Ints

NEAR_EVERY = 5
"""One of so many rounds is inside the switches."""


def random_pairs(members: Ints, random: np.random.Generator) -> Ints:
    """Disjoint pairs of members, shape (m, 2); one of an odd number is left out."""
    order = random.permutation(members)
    return order[: len(order) // 2 * 2].reshape(-1, 2)


def draw_rounds(switches: Ints | None, count: int, rounds: int, random: np.random.Generator) -> list[Ints]:
    """The pairs of each round, shape (m, 2), for `count` nodes on these `switches` (None: not known)."""
    everybody = np.arange(count)
    if switches is None or len(np.unique(switches)) < 2:
        return [random_pairs(everybody, random) for _ in range(rounds)]
    groups = [np.flatnonzero(switches == switch) for switch in np.unique(switches)]
    places, drawn, tournament = max(map(len, groups)), list[Ints](), 0
    for number in range(rounds):
        if number % NEAR_EVERY == NEAR_EVERY - 1:
            drawn.append(np.concatenate([random_pairs(group, random) for group in groups]))
            continue
        seats = np.full((len(groups), places), -1)
        for switch, group in enumerate(groups):
            seats[switch, : len(group)] = random.permutation(group)
        meetings = np.concatenate([_meeting(seats, place, tournament + place) for place in range(places)])
        tournament += places
        drawn.append(np.concatenate([meetings, random_pairs(np.setdiff1d(everybody, meetings), random)]))
    return drawn


def _meeting(seats: Ints, place: int, tournament: int) -> Ints:
    """The pairs of nodes at one place of their switches in one round of a tournament (circle method);
    `seats`: the nodes, shape (switches, places), -1 for none.
    """
    size = len(seats) + len(seats) % 2
    steps = np.arange(1, size // 2)
    one = np.append((tournament + steps) % (size - 1), size - 1)
    other = np.append((tournament - steps) % (size - 1), tournament % (size - 1))
    inside = (one < len(seats)) & (other < len(seats))
    pairs = np.stack([seats[one[inside], place], seats[other[inside], place]], axis=1)
    return pairs[(pairs >= 0).all(axis=1)]
