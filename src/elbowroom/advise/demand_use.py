"""Memory and last-level cache in forecasts of co-location by what the jobs lose beside a known load."""

from __future__ import annotations

from collections.abc import Mapping

from elbowroom.models.demand import Demand, demand_of_profile, predicted_slowdown
from elbowroom.profile.analysis import Analysis
from elbowroom.profile.forecast import Contended, Contention, Factor
from elbowroom.profile.replay_job import replay_job

SAME = ("host", "cores", "load_cores")
"""Fields that demands of one machine have in common."""


def contention_of_demands(jobs: Mapping[str, Analysis]) -> Contention | None:
    """What memory and cache cost two of these jobs beside each other, by the demand in their profiles; None
    where a profile has none. UsageError for a damaged file.
    """
    demands: dict[int, Demand] = {}
    names: dict[int, str] = {}
    for name, job in jobs.items():
        demand = demand_of_profile(job.profile.folder)
        if demand is None:
            return None
        demands[id(job)], names[id(job)] = demand, name
    notes = _differences(dict(zip(jobs, demands.values(), strict=True)))

    def contention(a: Analysis, b: Analysis) -> Contended:
        first, second = demands[id(a)], demands[id(b)]
        computing = replay_job(a).computing * replay_job(b).computing
        return Contended(
            a=_factor(first, second, computing),
            b=_factor(second, first, computing),
            notes=(*notes, *_doubts(names[id(a)], first), *_doubts(names[id(b)], second)),
        )

    return contention


def _factor(program: Demand, companion: Demand, computing: float) -> Factor:
    """The slowdown of a whole run, as one of the computation while the other job computes: the demand was
    measured over the communication of both, too.
    """
    slower = predicted_slowdown(program, companion)
    share = max(computing, 1e-3)
    value, low, high = (1 + (one - 1) / share for one in (slower.value, slower.low, slower.high))
    return Factor(value=value, low=low, high=high)


def _doubts(name: str, demand: Demand) -> list[str]:
    doubts = [f"the demand of {name} is not to be trusted: {note}" for note in demand.notes]
    if unresolved := [one for one in demand.pressure if one.unresolved]:
        doubts.append(f"what load {name} is itself is not known: {unresolved[0].unresolved}")
    return doubts or [f"memory and cache of {name}: by its demand beside a known load"]


def _differences(demands: Mapping[str, Demand]) -> list[str]:
    first, *others = demands
    return [
        f"the demands of {first} and {other} were measured on different hosts or cores"
        for other in others
        if any(getattr(demands[first], field) != getattr(demands[other], field) for field in SAME)
    ]
