"""Simulating the clocks of a job, as Python sees it (docs/clock.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.trace.simulated_clocks import SimulatedClocks

CLOCKS = ("affine", "thermal", "walk", "steps", "slewing", "mixed")
LINKS = ("symmetric", "asymmetric", "lossy", "heavy-tail", "busy")


def simulate_clocks(
    clocks: int = 1024,
    *,
    seconds: float = 600.0,
    every: float = 10.0,
    clock: str = "thermal",
    link: str = "symmetric",
    bad: float = 0.0,
    seed: int = 1,
    shown: int = 4,
) -> SimulatedClocks:
    """`clocks` that drift as `clock` says (one of CLOCKS), compared over links as `link` says (LINKS) every
    so many seconds, `bad` (0 to 0.5) of the sync points told wrong; how right corrected times are then, by
    the truth. `shown` clocks are told one by one. The same `seed` gives the same outcome.

    UsageError for what cannot be simulated, MachineError when the simulator cannot be built.
    """
    from elbowroom.launch.clock_simulator import simulate_clocks as run

    _check(clocks, seconds, every, clock, link, bad)
    request: dict[str, Any] = {
        "clocks": clocks,
        "duration_ns": round(seconds * 1e9),
        "every_ns": round(every * 1e9),
        "clock": clock,
        "link": link,
        "bad": bad,
        "seed": seed,
        "shown": shown,
    }
    return run(request)


def _check(clocks: int, seconds: float, every: float, clock: str, link: str, bad: float) -> None:
    for field, value, known in (("clock", clock, CLOCKS), ("link", link, LINKS)):
        if value not in known:
            raise UsageError("there is none", field=field, value=value, mend=f"one of {', '.join(known)}")
    if not 1 <= clocks <= 65536:
        raise UsageError("is not between 1 and 65536", field="clocks", value=clocks)
    for field, time in (("seconds", seconds), ("every", every)):
        if not 1e-6 <= time <= 1e6:
            raise UsageError("is not between 1e-6 and 1e6 s", field=field, value=time)
    if not 0 <= bad <= 0.5:
        raise UsageError(
            "is not between 0 and 50%", field="bad", value=bad, mend="of more than half nothing can be told"
        )


def simulated_clock_figures(found: SimulatedClocks) -> list[Figure]:
    """What each way to compare clocks is worth, errors over time, and the drift of some clocks."""
    from elbowroom.trace.simulated_clocks import simulated_clock_figures as figures

    return figures(found)


def save_simulated_clocks(found: SimulatedClocks, file: str | Path) -> None:
    """The figures as a .svg or .png, or the clocks that are told one by one as a page (.html)."""
    from elbowroom.draw.files import save_panels
    from elbowroom.store.files import write_atomically
    from elbowroom.trace.sync_figures import sync_report

    path = Path(file)
    if path.suffix == ".html":
        write_atomically(path, sync_report(found.sync).encode())
        return
    title = f"{found.clocks} simulated clocks"
    save_panels(simulated_clock_figures(found), path, columns=2, title=title, shared=False)
