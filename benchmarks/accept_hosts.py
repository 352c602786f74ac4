"""`accept` on hosts in network namespaces of one machine, with planted faults and a host that dies.

    python benchmarks/accept_hosts.py [--hosts 8 16 32 64] [--budget 60s] [--faults link limit lost]
    python benchmarks/accept_hosts.py --answering 10000

Each host has a link with a token bucket; all share the cores of this machine, so that their computation is
noisy, and links limit messages. For each number of hosts:

- *cost*: seconds of the whole command, of the job's start, and of a first round; bytes of a node to rank 0
  in the first examination, at most 2 kB.
- with `--faults`: `link` gives one host half of the rate, `limit` another one a control group with a quarter
  of the processor time that the others get, and `lost` takes the processes and the link of a third one in
  mid-run. The first two must be suspects of this cause, the third named, all others measured, and the run
  resumed. No other host may be a suspect.

With `--answering`, nodes answer at once and nothing is measured: processor time and memory of the driver for
so many nodes, with one of them suspected.

Needs root, but for `--answering`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command import Command, status

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from accepted_hosts import limit_links, names, start_accept  # noqa: E402
from elbowroom.accept.acceptance import examine  # noqa: E402
from elbowroom.accept.allocated_site import SitePlan  # noqa: E402
from elbowroom.accept.history import write_values  # noqa: E402
from linked_hosts import LinkedHosts, NoHostsError, linked_hosts  # noqa: E402
from measured_nodes import AnsweringNodes, measured  # noqa: E402

BYTES_MOST = 2000
THROTTLED = 0.25
"""Part of an equal share of the cores."""
FAULTS = ("link", "limit", "lost")


def journal(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run."""
    file = folder / "run" / "journal.jsonl"
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def finished(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    """The document that a driver prints, and what it said."""
    out, said = process.communicate()
    if not out.strip():
        raise SystemExit(f"accept failed with exit code {process.returncode}: {said[-2000:]}")
    return json.loads(out), said


def cost(lines: list[dict[str, Any]], hosts: int) -> tuple[float, float]:
    """Seconds of a first round, and bytes of a node to rank 0 in the first examination."""
    first = [line for line in lines if line.get("stage") in ("first", "whole")]
    rounds = len({line.get("round", 0) for line in first if line["stage"] == "first"})
    seconds = sum(line["seconds"] for line in first if line["stage"] == "first")
    return seconds / max(rounds, 1), sum(line["bytes"] for line in first) / (hosts - 1)


def with_faults(hosts: LinkedHosts, folder: Path, budget: str, faults: Sequence[str]) -> tuple[str, bool]:
    """What was found of a slow link, a throttled host and one that dies; and whether all was."""
    at = dict(zip(FAULTS, hosts.names[-3:], strict=True))
    planted = {at[fault]: fault for fault in faults if fault != "lost"}
    slow = at["link"] if "link" in faults else ""
    limit_links(hosts, slow=slow)
    if "limit" in faults:
        hosts.throttle(at["limit"], THROTTLED * (os.cpu_count() or 1) / len(hosts.names))
    process = start_accept(hosts, folder, ["--budget", budget, "-o", "run"])
    if "lost" in faults:
        while process.poll() is None and sum(line.get("part") == "train" for line in journal(folder)) < 2:
            time.sleep(0.1)
        hosts.kill(at["lost"])
    document, _ = finished(process)
    suspects = {one["name"]: one["cause"] for one in document["suspects"]}
    missing = [one["name"] for one in document["missing"]]
    resumed = "-"
    if "lost" in faults:
        hosts.revive(at["lost"])
        limit_links(hosts, slow=slow)
        again, _ = finished(start_accept(hosts, folder, ["--budget", budget, "--resume", "run"]))
        resumed = "yes" if not again["missing"] else "no"
    right = suspects == planted and missing == [at["lost"]] * ("lost" in faults) and resumed != "no"
    cells = (
        *(suspects.get(at[fault], "no") if fault in faults else "-" for fault in FAULTS[:2]),
        ", ".join(missing) or "-",
        resumed,
        ", ".join(f"{name} ({suspects[name]})" for name in sorted(set(suspects) - set(planted))) or "none",
        f"{document['disturbed']:.0%}",
    )
    return " | ".join(cells), right


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
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            try:
                with linked_hosts(folder, names(count)) as hosts:
                    limit_links(hosts)
                    began = time.monotonic()
                    if options.faults:
                        answer, right = with_faults(hosts, folder, options.budget, options.faults)
                        missed |= not right
                    else:
                        process = start_accept(hosts, folder, ["--budget", options.budget, "-o", "run"])
                        document, _ = finished(process)
                        answer = f"exit code {document['exit_code']}, {len(document['suspects'])} suspects"
                        missed |= document["exit_code"] == 4
                    whole = time.monotonic() - began
            except NoHostsError as error:
                print(f"network namespaces: {error}: linked_hosts is not installed here", file=sys.stderr)
                return 1
            rows = journal(folder)
            seconds, size = cost(rows, count)
            missed |= size > BYTES_MOST
            start = next((line["start"] for line in rows if line.get("start")), 0.0)
            lines.append(f"| {count} | {whole:.0f} | {start:.1f} | {seconds:.1f} | {size:.0f} | {answer} |")
            print(lines[-1], flush=True)
    print("\n".join(lines))
    if options.table is not None:
        options.table.write_text("\n".join([*lines, ""]))
    return status(options, missed)


if __name__ == "__main__":
    raise SystemExit(main())
