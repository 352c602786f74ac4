"""A task-based runtime on a virtual machine, event by event, and a guard that decides for it step by step.

A step has memory-bound and compute-bound tasks, a burst of messages, and tasks that need what the messages
bring. Under the setting `hold=N` at most N workers have memory-bound tasks while messages move.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from elbowroom.guard.decision import Block, Decision
from elbowroom.guard.experiment import AS_IT_IS
from elbowroom.guard.thread_search import StepObservation
from elbowroom.models.curves import Situation
from elbowroom.virtual.truth import Truth

LOOKAHEAD = 4
"""Steps that are planned before their outcome is known."""


class StepGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A step: so many tasks of `memory_bytes` and of `compute_seconds`, `message_bytes` in one burst, and
    `behind` of the compute-bound tasks that wait for the messages; memory-bound tasks come first.
    """

    memory_tasks: int
    memory_bytes: float
    compute_tasks: int
    compute_seconds: float
    message_bytes: float
    behind: int


def rates_of(truth: Truth, workers: int) -> list[tuple[float, float, float]]:
    """For 0 to `workers` with memory-bound tasks: B/s of each alone, of each beside messages, of messages."""
    places = [Situation(comp_node=0, comm_node=0, n=n) for n in range(1, workers + 1)]
    streams = [truth.streams(place) for place in places]
    rows = [(one[0] / n * 1e6, one[2] / n * 1e6, one[3] * 1e6) for n, one in enumerate(streams, start=1)]
    return [(0.0, 0.0, streams[0][1] * 1e6), *rows]


def step_seconds(
    graph: StepGraph, rates: list[tuple[float, float, float]], workers: int, hold: int | None
) -> float:
    """How long a step takes; `hold`: the most workers with memory-bound tasks while messages move."""
    memory, free = graph.memory_tasks, graph.compute_tasks - graph.behind
    behind = graph.behind
    running: list[float] = []  # bytes left of each memory-bound task that runs
    computing: list[float] = []  # ends of compute-bound tasks
    message, now = graph.message_bytes, 0.0
    while True:
        moves = message > 0
        while len(running) + len(computing) < workers:
            allowed = not moves or hold is None or len(running) < hold
            if memory and allowed and (hold is None or not free or not moves):
                memory -= 1
                running.append(graph.memory_bytes)
            elif free or (behind and not moves):
                free, behind = (free - 1, behind) if free else (free, behind - 1)
                heapq.heappush(computing, now + graph.compute_seconds)
            elif memory and allowed:
                memory -= 1
                running.append(graph.memory_bytes)
            else:
                break
        if not running and not computing and not moves:
            return now
        alone, together, wire = rates[len(running)]
        rate = together if moves else alone
        times = [computing[0] - now] if computing else []
        times += [min(running) / rate] if running else []
        times += [message / wire] if moves else []
        passed = max(min(times), 0.0)
        now += passed
        running = [left - passed * rate for left in running]
        running = [left for left in running if left > graph.memory_bytes * 1e-9]
        message = message - passed * wire if moves else 0.0
        message = 0.0 if message < graph.message_bytes * 1e-9 else message
        while computing and computing[0] <= now * (1 + 1e-12):
            heapq.heappop(computing)


def decide(
    decision: Decision, seconds: Callable[[str], float], steps: int
) -> tuple[float, Mapping[str, int]]:
    """Runs so many steps as `decision` says, of which LOOKAHEAD are planned before their outcome is known:
    the time of all, and how many had each arm.
    """
    total, counts, done = 0.0, dict[str, int](), 0
    queue: deque[Block] = deque()
    while done < steps:
        while sum(block.steps for block in queue) < LOOKAHEAD:
            queue.append(decision.next_block())
        block = queue.popleft()
        taken = [StepObservation(seconds(block.arm), {}, {}, {}) for _ in range(block.steps)]
        total += sum(step.seconds for step in taken)
        counts[block.arm] = counts.get(block.arm, 0) + block.steps
        done += block.steps
        decision.add(block, taken)
    return total, counts


def noisy(base: Mapping[str, float], noise: float, seed: int) -> Callable[[str], float]:
    """Steps with noise whose tail is heavy, and which drift."""
    generator = np.random.default_rng(seed)
    drift = 0.0

    def seconds(arm: str) -> float:
        nonlocal drift
        drift += generator.normal(0, noise / 20)
        return float(base[arm if arm in base else AS_IT_IS] * np.exp(drift + noise * generator.standard_t(4)))

    return seconds
