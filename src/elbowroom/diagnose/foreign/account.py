"""The account of a run by a file of another tool, and the causes for which it has evidence.

A part that the file does not give is None; what it gives as MPI time without saying why is not explained.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping

from elbowroom.diagnose.causes import LEAST, Cause, CauseName
from elbowroom.diagnose.foreign.profile import Efficiencies, ForeignProfile
from elbowroom.quantities import percent, short_time

_IO = re.compile(r"MPI_File_")
_LIBRARY = re.compile(
    r"MPI_(Init|Finalize|Initialized|Comm_|Type_|Group_|Op_|Info_|Cart|Graph|Dims_|Topo_|Err|Attr_|Keyval_|Get_"
    r"|Address|Wti|Buffer_|Request_|Cancel|Pack|Unpack|Query|Is_|Win_(create|allocate|free|set|get|attach|detach))"
)


def foreign_account(profile: ForeignProfile, parts: tuple[str, ...]) -> dict[str, float | None]:
    """Shares of the run by part, which sum to 1; `parts`: all parts, `not_explained` among them."""
    known: dict[str, float | None] = dict.fromkeys(parts)
    known["compute"] = profile.useful
    if profile.mpi is not None and profile.calls:
        total = sum(call.seconds for call in profile.calls)
        whole = profile.seconds * (profile.ranks or 1)
        for part, pattern in (("io", _IO), ("library", _LIBRARY)):
            times = [call.seconds for call in profile.calls if pattern.match(call.function)]
            if times and profile.all_calls and whole:
                known[part] = min(profile.mpi * sum(times) / total if total else 0.0, sum(times) / whole)
    known["not_explained"] = max(0.0, 1.0 - sum(value for value in known.values() if value is not None))
    return known


def foreign_pop(profile: ForeignProfile) -> Efficiencies:
    """The factors in the file, or by TALP's definitions from the times of all ranks."""
    if len(profile.by_rank) < 2 or profile.pop.parallel_efficiency is not None:
        return profile.pop
    outside = [one.seconds - one.mpi_s for one in profile.by_rank]
    mean, most, longest = statistics.fmean(outside), max(outside), max(one.seconds for one in profile.by_rank)
    if not most:
        return profile.pop
    return Efficiencies(
        parallel_efficiency=mean / longest, load_balance=mean / most, communication=most / longest
    )


def foreign_causes(profile: ForeignProfile, account: Mapping[str, float | None]) -> tuple[Cause, ...]:
    """The causes that the file has evidence for, largest first; none if it does not say why time passes in
    MPI.
    """
    late = _late_ranks(profile)
    if late is not None:
        return (late,)
    if profile.mpi is not None and profile.mpi < LEAST and account["compute"] is not None:
        share = account["compute"]
        sentence = f"Communication is not the problem: ranks compute {percent(share)} of the run."
        return (
            _cause("computation", share, sentence, f"They are inside MPI for {percent(profile.mpi)} of it."),
        )
    return ()


def _late_ranks(profile: ForeignProfile) -> Cause | None:
    """What the mean rank waits for the one that computes longest."""
    ranks: tuple[int, ...] = ()
    if len(profile.by_rank) > 1:
        outside = {one.rank: one.seconds - one.mpi_s for one in profile.by_rank}
        last = max(outside, key=lambda rank: outside[rank])
        mean, ranks = statistics.fmean(outside.values()), (last,)
        share = (outside[last] - mean) / statistics.fmean(one.seconds for one in profile.by_rank)
        longest, usual = short_time(outside[last]), short_time(mean)
        sentence = f"Rank {last} is outside MPI for {longest}, the mean rank for {usual}"
    elif profile.pop.load_balance and profile.useful is not None and (profile.ranks or 2) > 1:
        share = profile.useful * (1 / profile.pop.load_balance - 1)
        sentence = f"The load balance is {profile.pop.load_balance:.2f}"
    else:
        return None
    # Who computes less waits inside MPI; time that is not there was not lost to it.
    share = min(share, 1.0 if profile.mpi is None else profile.mpi)
    if share < LEAST:
        return None
    what = f"Ranks wait for those that compute longer: {percent(share)} of the run."
    return _cause("late-rank", share, what, f"{sentence}.", ranks)


def _cause(
    cause: CauseName, share: float, sentence: str, evidence: str, ranks: tuple[int, ...] = ()
) -> Cause:
    """A cause of a whole run: it has no interval over steps."""
    return Cause(
        cause=cause, share=share, low=share, high=share, sentence=sentence, evidence=evidence, ranks=ranks
    )
