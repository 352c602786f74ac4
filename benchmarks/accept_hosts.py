"""`accept` on hosts in network namespaces of one machine, with planted faults and a host that dies.

    python benchmarks/accept_hosts.py [--hosts 8 16 32 64] [--budget 60s] [--faults link limit lost] [--slurm]
    python benchmarks/accept_hosts.py --answering 10000

Each host has a link with a token bucket; all share the cores of this machine, so that their computation is
noisy, and links limit messages. For each number of hosts:

- *cost*: seconds of the whole command, of the job's start, and of a first round; bytes of a node to rank 0
  in the first examination, at most 2 kB.
- with `--faults`: `link` gives one host half of the rate, `limit` another one a control group with a quarter
  of the processor time that the others get, and `lost` takes the processes and the link of a third one in
  mid-run. The first two must be suspects of this cause, the third named, all others measured, and the run
  resumed. No other host may be a suspect.

With `--slurm`, each host has a slurmd of its own, and the driver is inside an allocation of all of them.
With `--keep FOLDER`, runs are kept there, and the same command again resumes them with all hosts.
With `--answering`, nodes answer at once and nothing is measured: processor time and memory of the driver for
so many nodes, with one of them suspected.

Needs root, but for `--answering`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from command import Command, status

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from accepted_hosts import limit_links, names, start_accept  # noqa: E402
from elbowroom.accept.acceptance import NOISY, SUSPECTS, examine  # noqa: E402
from elbowroom.accept.allocated_site import SitePlan  # noqa: E402
from elbowroom.accept.history import write_values  # noqa: E402
from linked_hosts import LinkedHosts, NoHostsError, linked_hosts  # noqa: E402
from measured_nodes import AnsweringNodes, measured  # noqa: E402
from slurm_cluster import NoSlurmError, Slurm, slurm_daemons  # noqa: E402

BYTES_MOST = 2000
THROTTLED = 0.25
"""Part of an equal share of the cores."""
FAULTS = ("link", "limit", "lost")


def journal(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run."""
    file = folder / "run" / "journal.jsonl"
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The document that a driver prints."""
    out, said = process.communicate()
    if process.returncode not in (0, NOISY, SUSPECTS):
        raise SystemExit(f"accept failed with exit code {process.returncode}: {said[-2000:]}")
    document: dict[str, Any] = json.loads(out)
    return document


def cost(lines: list[dict[str, Any]], hosts: int) -> tuple[float, float]:
    """Seconds of a first round, and bytes of a node to rank 0 in the first examination."""
    first = [line for line in lines if line.get("stage") in ("first", "whole")]
    rounds = len({line.get("round", 0) for line in first if line["stage"] == "first"})
    seconds = sum(line["seconds"] for line in first if line["stage"] == "first")
    facts = next((line.get("bytes", 0) for line in lines if line.get("names")), 0)
    return seconds / max(rounds, 1), (facts + sum(line["bytes"] for line in first)) / (hosts - 1)


class Examined:
    """The hosts of a run in `folder`, by mpiexec, or in an allocation of Slurm (`slurm`)."""

    def __init__(self, hosts: LinkedHosts, folder: Path, words: Sequence[str], slurm: Slurm | None) -> None:
        self.hosts = hosts
        self.folder = folder
        self._words = words
        self._slurm = slurm

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The driver."""
        allocation = None if self._slurm is None else self._slurm.allocation()
        return start_accept(self.hosts, self.folder, [*self._words, *words], allocation)

    def revive(self, name: str, slow: str) -> None:
        """A host that was killed is back. Slurm takes such hosts from allocations: it makes a new one."""
        self.hosts.revive(name)
        limit_links(self.hosts, slow=slow)
        if self._slurm is not None:
            self._slurm.release()
            self._slurm.start_node(name)
            self._slurm.wait_for_nodes()
            self._slurm.allocate(len(self.hosts.names))


def planted_hosts(hosts: LinkedHosts, faults: Sequence[str]) -> dict[str, str]:
    """The host of each fault, which it has from now on, but for `lost`."""
    at = {fault: name for fault, name in zip(FAULTS, hosts.names[-3:], strict=True) if fault in faults}
    limit_links(hosts, slow=at.get("link", ""))
    if "limit" in at:
        hosts.throttle(at["limit"], THROTTLED * (os.cpu_count() or 1) / len(hosts.names))
    return at


def first_run(run: Examined, lost: str | None) -> dict[str, Any]:
    """The result of a run in which a host dies after two rounds."""
    process = run.start("-o", "run")
    if lost is not None:
        while process.poll() is None and sum(line.get("part") == "train" for line in journal(run.folder)) < 2:
            time.sleep(0.1)
        run.hosts.kill(lost)
    return finished(process)


def with_faults(run: Examined, at: Mapping[str, str], kept: Path | None) -> tuple[str, bool]:
    """What was found of a slow link, a throttled host and one that dies; and whether all was. `kept`: the run
    that is continued, if it is there.
    """
    planted = {name: fault for fault, name in at.items() if fault != "lost"}
    dying = [name for fault, name in at.items() if fault == "lost"]
    resumed = "-"
    if kept is not None and kept.exists():
        shutil.copytree(kept, run.folder / "run")
        document, dying = finished(run.start("--resume", "run")), []
        resumed = "no" if document["missing"] else "yes"
    else:
        document = first_run(run, at.get("lost"))
    if dying and kept is None:
        run.revive(at["lost"], at.get("link", ""))
        resumed = "no" if finished(run.start("--resume", "run"))["missing"] else "yes"
    suspects = {one["name"]: one["cause"] for one in document["suspects"]}
    missing = [one["name"] for one in document["missing"]]
    cells = (
        *(suspects.get(at[fault], "no") if fault in at else "-" for fault in FAULTS[:2]),
        ", ".join(missing) or "-",
        resumed,
        ", ".join(f"{name} ({suspects[name]})" for name in sorted(set(suspects) - set(planted))) or "none",
        f"{document['disturbed']:.0%}",
    )
    return " | ".join(cells), suspects == planted and missing == dying and resumed != "no"


def driver_cost(nodes: int) -> str:
    """A line on the driver's cost for so many nodes that answer at once."""
    names_ = tuple(f"n{number}" for number in range(nodes))
    slow = {"n3": {"bandwidth": 0.3, "bandwidth-beside": 0.3, "bandwidth-both": 0.3}}
    with tempfile.TemporaryDirectory() as scratch:
        site, kept = measured(Path(scratch) / "run", AnsweringNodes(slow), SitePlan(nodes=names_))
        before = time.process_time()
        document = examine(site, name="answering")
        write_values(Path(scratch) / "nodes.parquet", kept.lines, names_, site.names)
        seconds = time.process_time() - before
        size = (Path(scratch) / "run" / "journal.jsonl").stat().st_size
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rounds = len({(line.stage, line.round) for line in kept.lines if line.part == "pairs"})
    return (
        f"{nodes} nodes, {rounds} rounds: {seconds:.1f} s of processor time (driver and answers), "
        f"journal {size / 1e6:.1f} MB, {memory / 1e6:.0f} MB of memory, {len(document.suspects)} suspect"
    )


def main() -> int:
    """Prints a line for each number of hosts."""
    parser = Command(__doc__, "--hosts 4 --budget 5s", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--budget", default="60s", help="of each run of accept")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, help="plant these, one on each of three hosts")
    parser.add_argument("--timeout", default="60s", help="a host that does not answer for so long is lost")
    parser.add_argument("--slurm", action="store_true", help="in an allocation of Slurm's daemons")
    parser.add_argument("--keep", type=Path, help="runs are kept here, and the same command resumes them")
    parser.add_argument(
        "--answering", type=int, metavar="N", help="the driver's cost for N nodes that answer"
    )
    parser.add_argument("--table", type=Path, help="also written here")
    options = parser.parse_args()
    if options.answering:
        print(driver_cost(options.answering))
        return status(options, False)
    head = ["hosts", "whole (s)", "start (s)", "round (s)", "bytes of a node"]
    head += (
        ["slow link", "throttled", "lost", "resumed", "others suspected", "waiting"]
        if options.faults
        else ["answer"]
    )
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    missed = False
    for count in options.hosts:
        try:
            cells, right = row(count, options)
        except (NoHostsError, NoSlurmError) as error:
            print(f"network namespaces: {error}: linked_hosts is not installed here", file=sys.stderr)
            return 1
        missed |= not right
        lines.append(f"| {count} | {cells} |")
        print(lines[-1], flush=True)
    print("\n".join(lines))
    if options.table is not None:
        options.table.write_text("\n".join([*lines, ""]))
    return status(options, missed)


def row(count: int, options: argparse.Namespace) -> tuple[str, bool]:
    """The cells of a line of the table, and whether all goals were met."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        folder = Path(scratch)
        hosts = stack.enter_context(linked_hosts(folder, names(count)))
        at = planted_hosts(hosts, options.faults or ())
        slurm = stack.enter_context(slurm_daemons(count, hosts)) if options.slurm else None
        if slurm is not None:
            slurm.allocate(count)
        words = ["--budget", options.budget, "--timeout", options.timeout]
        run = Examined(hosts, folder, words, slurm)
        began = time.monotonic()
        kept = None if options.keep is None else options.keep / f"{count}"
        if options.faults:
            answer, right = with_faults(run, at, kept)
        else:
            document = finished(run.start("-o", "run"))
            answer = f"exit code {document['exit_code']}, {len(document['suspects'])} suspects"
            right = document["exit_code"] != SUSPECTS
        whole = time.monotonic() - began
        rows = journal(folder)
        if kept is not None:
            shutil.copytree(folder / "run", kept, dirs_exist_ok=True)
    seconds, size = cost(rows, count)
    start = next((line["start"] for line in rows if line.get("start")), 0.0)
    return f"{whole:.0f} | {start:.1f} | {seconds:.1f} | {size:.0f} | {answer}", right and size <= BYTES_MOST


if __name__ == "__main__":
    raise SystemExit(main())
