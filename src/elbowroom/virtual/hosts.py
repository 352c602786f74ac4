"""What the processes of one host get at once in the network of credits, or line by line: kernels, message
sizes and patterns said as streams (virtual/loads.py, virtual/requests.py).

- **Kernels** move their bus bytes, as memset does, and compute their flops beside it. Those without memory
  traffic lose nothing and take nothing.
- **Patterns**: `pingpong` receives and sends in turns, so its time is the mean of both and so is what the
  computation gets meanwhile; `receive` keeps two messages in flight; `bidirectional` and `ring` do both at
  once, and their bandwidth is one direction's, half of both.
- **Communication threads** have as many messages in flight; **processes** of a host share the NIC evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.models.load import Computing
from elbowroom.plan.kernels import Kernel, find
from elbowroom.virtual.credits import Credits
from elbowroom.virtual.definition import Definition
from elbowroom.virtual.laws import RECEPTION_IN_FLIGHT, Exchange, ProcessRates, Work, unit_of
from elbowroom.virtual.loads import rates
from elbowroom.virtual.requests import Moment, Requests
from elbowroom.virtual.requests import rates as request_rates
from elbowroom.virtual.truth import MessageFlow, StreamRates

Process = tuple[Work, Exchange]
Network = Credits | Requests

ELEMENT = 8
"""Bytes of what the kernels compute on."""

RECEIVE, SEND = (False,), (True,)
TURNS = {
    # The directions of a pattern's turns: whether each flow sends.
    "pingpong": (RECEIVE, SEND),
    "receive": (RECEIVE,),
    "bidirectional": (RECEIVE + SEND,),
    "ring": (RECEIVE + SEND,),
}


def answers(truth: Network, definition: Definition, host: Sequence[Process]) -> tuple[ProcessRates, ...]:
    """Each process alone (all compute, or all communicate) and together; UsageError where the truth says
    nothing of a place. All processes run the same kernel and pattern.
    """
    kernel = find(host[0][0].kernel)
    own = [_groups(truth, work, kernel) for work, _ in host]
    silent = _rates(truth, [group for groups in own for group in groups], (), kernel).groups
    idle = _at_once(truth, host, [()] * len(host), kernel)
    together = _at_once(truth, host, own, kernel)
    scale = unit_of(definition, kernel)
    results = []
    for place, (work, messages) in enumerate(host):
        before = sum(len(groups) for groups in own[:place])
        comp_alone, comp = sum(silent[before : before + len(own[place])]), together[place][0]
        if kernel is None or not kernel.moves_memory:
            comp_alone = comp = float(work.n + work.n_other)
        under_way = messages.size * messages.threads
        results.append(
            ProcessRates(
                comp_alone=None if kernel is None else comp_alone * scale,
                comp_together=None if kernel is None else comp * scale,
                comm_alone=idle[place][1],
                comm_together=together[place][1],
                latency_alone=under_way / idle[place][1],
                latency_together=under_way / together[place][1],
            )
        )
    return tuple(results)


def _groups(truth: Network, work: Work, kernel: Kernel | None) -> tuple[Computing, ...]:
    if kernel is None or not kernel.moves_memory:
        return ()
    # A core of the network moves its bus bytes one by one; a simulated one moves lines that its kernel knows
    # of.
    moved = kernel.algorithmic_bytes if isinstance(truth, Requests) else kernel.bus_bytes
    intensity = kernel.flops * (work.cursor if kernel.uses_cursor else 1) / moved
    return tuple(
        Computing(socket=socket, node=work.comp_node, count=count, intensity=intensity)
        for socket, count in enumerate(work.cores)
        if count
    )


def _at_once(
    truth: Network,
    host: Sequence[Process],
    own: Sequence[tuple[Computing, ...]],
    kernel: Kernel | None,
) -> list[tuple[float, float]]:
    """Computation and communication of each process, MB/s, means over the time of the pattern's turns."""
    turns = TURNS[host[0][1].pattern]
    times, moved = [0.0] * len(host), [0.0] * len(host)
    for turn in turns:
        flows = [_flow(truth, messages, sending) for _, messages in host for sending in turn]
        shares = _rates(truth, [group for groups in own for group in groups], flows, kernel)
        groups, ways = iter(shares.groups), iter(shares.flows)
        for place, computing in enumerate(own):
            comm = sum(next(ways) for _ in turn) / len(turn)
            times[place] += 1 / comm
            moved[place] += sum(next(groups) for _ in computing) / comm
    return [(work / time, len(turns) / time) for work, time in zip(moved, times, strict=True)]


def _rates(
    truth: Network, computing: Sequence[Computing], flows: Sequence[MessageFlow], kernel: Kernel | None
) -> StreamRates:
    """MB/s on the bus of each group and flow."""
    if isinstance(truth, Credits):
        return rates(truth, computing, flows, ())
    pattern = "N" if kernel is None or not kernel.moves_memory else _pattern(kernel)
    return request_rates(truth, Moment(tuple(computing), tuple(flows), (), pattern))


def _pattern(kernel: Kernel) -> str:
    """What a core does line by line: a line of each array in turn."""
    reads, stores = round(kernel.bytes_read / ELEMENT), round(kernel.bytes_written / ELEMENT)
    return "R" * reads + ("N" if kernel.non_temporal else "W") * stores


def _latency(truth: Network, far: bool) -> float:
    """Of the smallest message, us."""
    if isinstance(truth, Requests):
        return truth.node.setup_far if far else truth.node.setup_near
    return truth.network.far_latency if far else truth.network.near_latency


def _flow(truth: Network, messages: Exchange, sending: bool) -> MessageFlow:
    return MessageFlow(
        node=messages.comm_node,
        sending=sending,
        size=messages.size,
        in_flight=messages.threads * (RECEPTION_IN_FLIGHT if messages.pattern == "receive" else 1),
        latency=_latency(truth, messages.far),
        share=messages.share,
        far=messages.far,
    )
