"""What the messages of a step look like: how many of which size to whom, and what the library does with
them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from elbowroom.diagnose.account import Account
from elbowroom.diagnose.processors import use_of
from elbowroom.profile import rank_file as f
from elbowroom.profile.profile import MpiEvents, Profile

SMALL = 1024
"""Bytes up to which a message costs about as much as an empty one."""
MANY = 16
"""So many small messages to one neighbour, in a step or in WINDOW, could be fewer."""
WINDOW = 0.01
"""Seconds: a loop over small messages is a step of its own where nothing else repeats."""
_MOVING = (
    f.SEND, f.RECEIVE, f.SENDRECV, f.POSTED_SEND, f.POSTED_RECEIVE, f.COLLECTIVE, f.POSTED_COLLECTIVE,
)  # fmt: skip
_SENDING = (f.SEND, f.SENDRECV, f.POSTED_SEND, f.COLLECTIVE)

EAGER = {"open mpi": 4096, "mpich": 16384}
"""Bytes up to which the MPI libraries send a message at once inside a node, unless it is set."""
_EAGER_SETTINGS = re.compile(
    r"(OMPI_MCA_btl_(sm|vader)_eager_limit|UCX_RNDV_THRESH|MPIR_CVAR_CH4_\w*EAGER\w*|MPIR_CVAR_CH3_EAGER\w*)$"
)
_TCP = re.compile(
    r"btl[ =]+(?:tcp,self|self,tcp)\b|UCX_TLS[ =]+tcp\b|FI_PROVIDER[ =]+(?:tcp|sockets)\b|"
    r"MPIR_CVAR_NOLOCAL[ =]+1\b|(?:single_copy_mechanism|smsc)[ =]+none\b|btl[ =]+\^(?:sm|vader)\b"
)


def steps_in_window(account: Account) -> float:
    """How many steps are in WINDOW, 1 where a step is longer."""
    return max(1.0, WINDOW / max(account.step_s, 1e-9))


class SmallMessages(NamedTuple):
    """Small messages of the rank that sends most to one neighbour: how many in a step, or in WINDOW where a
    step is shorter, of how many bytes (median); `share`: of the time of all calls with messages that their
    calls take, all ranks.
    """

    rank: int
    peer: int
    number: float
    bytes: int
    share: float
    call: str


def small_messages(profile: Profile, account: Account) -> SmallMessages | None:
    """The small messages of a step; None where no neighbour gets many."""
    events = in_steps(profile, account)
    moving = np.isin(events.kind, _MOVING) & events.is_call
    small = moving & (events.bytes <= SMALL) & np.isin(events.kind, _SENDING)
    if not small.any():
        return None
    pairs, of, counts = np.unique(
        np.stack([events.rank[small], events.peer[small]], axis=1), axis=0, return_inverse=True,
        return_counts=True,
    )  # fmt: skip
    most = int(counts.argmax())
    count = float(counts[most] / max(account.count, 1)) * steps_in_window(account)
    if count < MANY:
        return None
    length = (events.end - events.begin).astype(np.float64)
    tiny = moving & (events.bytes <= SMALL)
    own = np.flatnonzero(small)[of.ravel() == most]
    return SmallMessages(
        rank=int(pairs[most][0]),
        peer=int(pairs[most][1]),
        number=count,
        bytes=int(np.median(events.bytes[own])),
        share=float(length[tiny].sum() / max(length[moving].sum(), 1.0)),
        call=events.names[int(np.bincount(events.call[own]).argmax())],
    )


class EagerMessages(NamedTuple):
    """Messages a little larger than the eager limit: their median size, how many in a step, or in WINDOW
    where a step is shorter, and the share of the time of all calls with messages that their calls take.
    """

    limit: int
    bytes: int
    per_step: float
    share: float


NEAR = 2.0
"""A message of so many times the eager limit at most could be sent eagerly."""


def above_eager_limit(profile: Profile, account: Account) -> EagerMessages | None:
    """The messages between the eager limit and NEAR times it, if a step has MANY of them."""
    limit = eager_limit(profile)
    if limit is None:
        return None
    events = in_steps(profile, account)
    moving = np.isin(events.kind, _MOVING) & events.is_call & (events.peer >= 0)
    near = moving & (events.bytes > limit) & (events.bytes <= NEAR * limit)
    count = float(near.sum() / max(account.count * len(account.ranks), 1)) * steps_in_window(account)
    if count < MANY:
        return None
    length = (events.end - events.begin).astype(np.float64)
    return EagerMessages(
        limit=limit,
        bytes=int(np.median(events.bytes[near])),
        per_step=count,
        share=float(length[near].sum() / max(length[moving].sum(), 1.0)),
    )


def eager_limit(profile: Profile) -> int | None:
    """The eager limit of the program's MPI: as it is set in its environment or command, else the usual
    one.
    """
    for name, value in settings_of(profile).items():
        if _EAGER_SETTINGS.search(name) and value.isdecimal():
            return int(value)
    mpi = profile.ranks[0].mpi.lower()
    return next((limit for name, limit in EAGER.items() if name in mpi), None)


class UnexpectedMessages(NamedTuple):
    """Messages that came before their receive was posted: how many a rank has in a step, or in WINDOW where a
    step is shorter, and their share.
    """

    per_step: float
    share: float


def unexpected_messages(account: Account) -> UnexpectedMessages | None:
    """The unexpected messages of nonblocking receives; None where a step has few."""
    messages = account.messages
    received = ~messages.out & (messages.posted < messages.begin)
    late = received & (messages.ready <= messages.posted)
    count = float(late.sum() / max(account.count * len(account.ranks), 1)) * steps_in_window(account)
    if count < MANY:
        return None
    return UnexpectedMessages(per_step=count, share=float(late.sum() / max(received.sum(), 1)))


class SlowMessages(NamedTuple):
    """Messages inside a node that take far longer than a copy of their bytes, although both ends are there:
    their median size and time alone, s; `share`: what they take beyond a copy, of all transfers.
    """

    bytes: int
    alone: float
    share: float


USUAL_S, USUAL_RATE = 5e-6, 2e9
"""A message inside a node takes 1 us and copies at some GB/s on any machine of today: it is slow if it takes
more than twice this time and its bytes at this rate."""


SLICE_S = 1e-3
"""A small message that takes longer waits for a core: a rank has one for about this long at a time."""


def slow_messages(profile: Profile, account: Account, *, crowded: bool) -> SlowMessages | None:
    """The slow ones of the messages between two ranks; None with several nodes, or where few are slow.

    `crowded`: ranks wait for cores. Then only messages that are shorter than a slice of the scheduler count.
    """
    messages = account.messages
    own = np.flatnonzero(messages.peer >= 0)
    if profile.nodes > 1 or not len(own):
        return None
    size, alone = messages.bytes[own], messages.alone[own]
    usual = USUAL_S + size / USUAL_RATE
    limit = eager_limit(profile) or SMALL
    whole = (size > limit) & (not crowded)
    slow = (alone > USUAL_S + usual) & (whole | (alone < SLICE_S))
    took = float(np.minimum(alone, messages.transfer[own]).sum())
    if 2 * slow.sum() < MANY or took <= 0:
        return None
    return SlowMessages(
        bytes=int(np.median(size[slow])),
        alone=float(np.median(alone[slow])),
        share=min(1.0, float((alone - usual)[slow].sum()) / took),
    )


class SlowTransport(NamedTuple):
    """Messages inside a node of which small and large ones are slow alike: what a small one takes alone, s,
    and at which rate the large ones move alone, B/s.
    """

    small_s: float
    rate: float


LARGE = 1 << 16
"""Bytes from which on a message takes as long as its copy."""


def transport_by_rate(profile: Profile, account: Account) -> SlowTransport | None:
    """How messages of a node move that can have gone neither through shared memory nor by one copy; None
    with several nodes, without many small and large ones, or where either are fast. A datatype that is packed
    slows down large messages only, and a search among unexpected ones small ones.
    """
    messages = account.messages
    own = np.flatnonzero((messages.peer >= 0) & (messages.alone > 0))
    size, alone = messages.bytes[own], messages.alone[own]
    small, large = alone[size <= SMALL], size >= LARGE
    if profile.nodes > 1 or 2 * min(len(small), large.sum()) < MANY:
        return None
    took, rate = float(np.median(small)), float(np.median(size[large] / alone[large]))
    slow = 2 * USUAL_S < took < SLICE_S and rate < USUAL_RATE
    return SlowTransport(took, rate) if slow else None


def slow_transport(profile: Profile) -> str | None:
    """The setting that keeps messages of a node from shared memory or a single copy; None without one."""
    text = " ".join(f"{name}={value}" for name, value in settings_of(profile).items())
    command = () if profile.manifest is None else profile.manifest.command
    match = _TCP.search(f"{text} {' '.join(command)}")
    return None if match is None else match[0]


def settings_of(profile: Profile) -> Mapping[str, str]:
    """Variables for MPI that the program's ranks had: of the environment, and those of the command."""
    command = () if profile.manifest is None else profile.manifest.command
    given = dict(use_of(profile).settings)
    for at, word in enumerate(command):
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            given[name] = value
        elif word in ("--mca", "-mca") and at + 2 < len(command):
            given[f"OMPI_MCA_{command[at + 1]}"] = command[at + 2]
        elif word in ("-env", "-genv") and at + 2 < len(command):
            given[command[at + 1]] = command[at + 2]
    return given


def in_steps(profile: Profile, account: Account) -> MpiEvents:
    """The records that begin in the steps of an account."""
    first, last = (1e9 * float(edge) for edge in account.edges[[0, -1]])
    events = profile.events
    return events.part((events.begin >= first) & (events.begin < last))
