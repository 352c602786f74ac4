"""One emulated machine with two sockets, four NUMA nodes and a network card behind node 2: does elbowroom see
it, does every plan end, are pages and messages where they should be, does a run survive a power failure?

    tests/emulated/image.sh && python3 tests/emulated/numa.py        # as root; about an hour

Every check is a line of numa.log in the guest's folder; the exit code is 0 only if all passed. Rates mean
nothing here: the processor is emulated, and its cores share fewer real ones.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from guest import REPOSITORY, Done, Guest, GuestError, Shape

ELBOWROOM = (
    "cd /root/elbowroom && export LD_PRELOAD=/root/patient.so OMPI_MCA_mpi_yield_when_idle=1 && "
    "exec .elbowroom/venv/bin/python -m elbowroom"
)
"""What waits sleeps (patient.c): ranks that poll would take the real cores from those that they wait for."""
NIC_NODE = 2

SHORT = ("window=0.02", "steady.limit=0.05", "working_set=1MB")
"""Of plans with the probe: short phases and small arrays, since every access is emulated."""

PLANS: dict[str, tuple[str, ...]] = {
    "quick": (*SHORT, "sizes=4,64KiB", "budget=0"),
    "placement": (*SHORT, "kernels=triad", "n=1", "sizes=4,64KiB"),
    "cores": (*SHORT, "kernels=triad", "sizes=4,64KiB"),
    "sizes": (*SHORT, "kernels=triad", "n=1", "sizes=4,4KiB,64KiB", "around=0"),
    "model": (*SHORT, "sizes=64KiB", "n=1,all"),
    "ring": (*SHORT, "sizes=64KiB", "n=1", "comm_threads=1"),
    "intensity": (*SHORT, "sizes=4,64KiB", "cursors=1,64", "n=1"),
    "frequency": (*SHORT, "sizes=4,64KiB", "n=few,all"),
    "contrast": (*SHORT, "sizes=4,64KiB", "n=1"),
    "polling": (*SHORT, "n=1", "cursors=2,10000", "backoffs=2,0"),
    "ema": ("who=sender,receiver", "accesses=0,64KiB", "access_step=16KiB", "window_sizes=4", "exchanges=3"),
    "kernels": ("order=96", "block=32", "n=1", "window=0.02"),
    "forwarding": (*SHORT, "ranks=4", "n=1", "trees=flat,chain"),
    "cholesky": ("tiles=4", "block=16", "trees=none,binary"),
    "qr": ("tiles=4", "block=16", "trees=none,binary"),
    "runtime-overhead": ("window=0.02", "steady.limit=0.05", "sizes=4,64KiB"),
    "overlap": (*SHORT, "kernels=triad", "n=1", "sizes=64KiB", "progress=none,test", "neighbours=2"),
    "collectives": (*SHORT, "n=1", "sizes=1KiB", "operations=bcast,allreduce", "progress=none,test"),
    "diffusion": (*SHORT, "cells=4000", "steps=3", "warmup=1", "sizes=64KiB", "comm_threads=1"),
}
"""Every named plan, with what makes it end soon: few points, one repetition."""


class Checks:
    """What was checked, written down as it is."""

    def __init__(self, log: TextIO) -> None:
        self._log = log
        self.failed = 0

    def note(self, text: str) -> None:
        """A line of the log that is no check."""
        print(text, flush=True)
        print(text, file=self._log, flush=True)

    def check(self, passed: bool, what: str, detail: str = "") -> bool:
        """Counts and notes one; `detail` is what was seen."""
        self.failed += 0 if passed else 1
        self.note(f"{'ok' if passed else 'FAILED':7}{what}{f': {detail}' if detail else ''}")
        return passed


def elbowroom(guest: Guest, *words: str, patience: float = 1800.0) -> Done:
    """One command of elbowroom in the guest."""
    return guest.run(f"{ELBOWROOM} {shlex.join(words)}", patience)


def run_words(plan: str, out: str) -> list[str]:
    """`run PLAN` as briefly as it can be measured. Debian's MPI is the one that StarPU has."""
    words = ["run", plan, "--mpi", "openmpi", "--repeat", "1", "--no-report", "--out", out]
    return [*words, *(word for setting in PLANS[plan] for word in ("--set", setting))]


def journal(guest: Guest, run: str) -> list[dict[str, Any]]:
    """The entries of a run's journal, without its first line."""
    text = guest.run(f"cat {run}/samples.jsonl").output
    entries = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    return [entry for entry in entries if "point" in entry]


def check_doctor(guest: Guest, checks: Checks) -> None:
    """Sockets, nodes, distances and the card's node, as `doctor` prints them."""
    done = elbowroom(guest, "doctor", "--mpi", "openmpi")
    checks.note(done.output.rstrip())
    checks.check(done.status == 0, "doctor ends", f"exit {done.status}")
    text = " ".join(done.output.split())
    for wanted in ("2 sockets", "4 NUMA nodes", "node 2"):
        checks.check(wanted in text, f"doctor prints {wanted!r}")


def check_plan(guest: Guest, checks: Checks, plan: str) -> None:
    """A plan ends with exit code 0 or 3, and every repetition was measured."""
    run = f"/root/runs/{plan}"
    begun = time.monotonic()
    guest.run(f"rm -rf {run}")
    done = elbowroom(guest, *run_words(plan, run))
    took = time.monotonic() - begun
    ended = checks.check(done.status in (0, 3), f"run {plan}", f"exit {done.status} after {took:.0f} s")
    if not ended:
        checks.note(done.output[-3000:])


def pages_of(entries: Iterable[dict[str, Any]]) -> dict[tuple[str, int], list[float]]:
    """Shares of pages on the wanted node, by side and node, of all repetitions."""
    shares: dict[tuple[str, int], list[float]] = {}
    for entry in entries:
        for side, pages in ((entry.get("record") or {}).get("pages") or {}).items():
            if pages and "share" in pages:
                shares.setdefault((side, pages["wanted"]), []).append(pages["share"])
    return shares


def check_pages(guest: Guest, checks: Checks) -> None:
    """Both sides' pages were on each of the four nodes when that was wanted."""
    shares = pages_of(journal(guest, "/root/runs/placement"))
    for side in ("comp", "comm"):
        for node in range(guest.shape.nodes):
            found = shares.get((side, node), [])
            detail = f"{len(found)} repetitions, share {min(found, default=0):.3f} or more"
            checks.check(bool(found) and min(found) > 0.99, f"pages of {side} are on node {node}", detail)


def check_places(guest: Guest, checks: Checks) -> None:
    """The communication thread was on the card's node, and on the other socket, by what the PCI tree says."""
    points = {
        entry["point"]: entry
        for entry in journal(guest, "/root/runs/placement")
        if (entry.get("record") or {}).get("status") != "failed"
    }
    cores = {int(point.rsplit("-core", 1)[1].split("-")[0]) for point in points if "-core" in point}
    near = {core for core in cores if core // 2 == NIC_NODE // 2}
    checks.check(bool(near), "messages were sent from a core near the card", f"cores {sorted(cores)}")
    checks.check(bool(cores - near), "and from a far one", f"cores {sorted(cores)}")


def check_wrong_node(guest: Guest, checks: Checks) -> None:
    """Pages that are moved to another node in mid-run are noticed: their samples are void."""
    run = "/root/runs/moved"
    settings = [*SHORT[:2], "working_set=1MB", "kernels=triad", "n=1", "sizes=64KiB", "control=false"]
    settings += ["comp_nodes=0", "comm_nodes=0", "comm_cores=near"]
    words = ["run", "placement", "--mpi", "openmpi", "--repeat", "30", "--no-report", "--out", run]
    words += [word for setting in settings for word in ("--set", setting)]
    measuring = guest.begin(f"{ELBOWROOM} {shlex.join(words)}")
    wait_for_repetitions(guest, run, 3)
    guest.run("for pid in $(pgrep -x probe); do migratepages $pid 0 1; done")
    done = measuring.wait(1800)
    entries = journal(guest, run)
    flagged = [entry for entry in entries if "wrong_node" in (entry.get("record") or {}).get("flags", ())]
    void = [entry for entry in flagged if entry["record"]["status"] == "failed"]
    clean = len(entries) - len(flagged)
    detail = f"{len(flagged)} of {len(entries)} repetitions, {len(void)} void, exit {done.status}"
    checks.check(bool(flagged) and len(void) == len(flagged), "moved pages are flagged wrong_node", detail)
    checks.check(clean >= 3, "repetitions before are not", f"{clean} clean")


def wait_for_repetitions(guest: Guest, run: str, count: int, patience: float = 900.0) -> int:
    """Waits until a run has so many repetitions in its journal; how many there are then."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = len(journal(guest, run))
        if found >= count:
            return found
        time.sleep(2)
    raise GuestError(f"{run} has fewer than {count} repetitions after {patience:.0f} s")


def check_power_failure(guest: Guest, checks: Checks) -> None:
    """A guest that is killed in mid-run leaves a run that resumes after the next boot, with nothing lost."""
    run = "/root/runs/killed"
    words = run_words("placement", run)
    guest.begin(f"{ELBOWROOM} {shlex.join(words)}")
    before = wait_for_repetitions(guest, run, 5)
    guest.kill()
    checks.note(f"       killed after {before} repetitions")
    guest.start()
    kept = journal(guest, run)
    # What was written last may be lost with the power, not more.
    checks.check(
        len(kept) >= before - 1, "the journal is there after the next boot", f"{len(kept)} repetitions"
    )
    done = elbowroom(guest, "run", "--resume", run, "--no-report")
    checks.check(done.status in (0, 3), "run --resume", f"exit {done.status}")
    if done.status not in (0, 3):
        checks.note(done.output[-3000:])
    entries = journal(guest, run)
    keys = {(entry["point"], entry["repetition"], entry.get("closing", False)) for entry in entries}
    same = entries[: len(kept)] == kept
    checks.check(same, "what was measured before the failure is unchanged", f"{len(kept)} repetitions")
    checks.check(len(keys) == len(entries), "no repetition was measured twice", f"{len(entries)} in all")


def check_study(guest: Guest, checks: Checks) -> None:
    """The dry run of the study names the figures of near and far as ones that this machine shows."""
    done = elbowroom(guest, "study", "denis2021", "--quick", "--dry-run", "--mpi", "openmpi")
    checks.note(done.output.rstrip())
    for figure in ("Fig. 4a", "Fig. 4b", "Table 1"):
        line = next((line for line in done.output.splitlines() if line.startswith(f"{figure}:")), "")
        checks.check(": can be shown" in line, f"study denis2021 can show {figure}", line)


def main(words: Sequence[str]) -> int:
    """Boots, checks, switches off; 0 only if every check passed."""
    parser = argparse.ArgumentParser(description="Checks elbowroom on one emulated machine.")
    parser.add_argument("--image", type=Path, default=REPOSITORY / "build" / "emulated")
    parser.add_argument("--plans", default=",".join(PLANS), help="names, separated by commas; default: all")
    parser.add_argument(
        "--accelerator", default="", help="of guest.py; default: kvm where it works, else tcg"
    )
    given = parser.parse_args(words)
    folder = given.image.absolute() / "guests" / "numa"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    guest = Guest(given.image.absolute(), folder, Shape(), "numa", given.accelerator)
    with (folder / "numa.log").open("w") as log:
        checks = Checks(log)
        try:
            with guest:
                checks.note(f"{guest.accelerator}, {guest.run('uname -r').output.strip()}")
                check_doctor(guest, checks)
                check_study(guest, checks)
                plans = given.plans.split(",")
                for plan in plans:
                    check_plan(guest, checks, plan)
                if "placement" in plans:
                    check_pages(guest, checks)
                    check_places(guest, checks)
                check_wrong_node(guest, checks)
                check_power_failure(guest, checks)
        except GuestError as error:
            checks.check(False, "the guest answers", str(error))
        checks.note(f"{checks.failed} checks failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
