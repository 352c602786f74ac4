"""`accept` on hosts in network namespaces of one machine, with planted faults and a host that dies.

    python benchmarks/accept_hosts.py [--hosts 8 16 32 64] [--budget 60s] [--faults] [--throttle]

Each host has a link with a token bucket; all share the cores of this machine, so that their computation is
noisy, and links limit messages. For each number of hosts:

- *cost*: seconds of the whole command, of the job's start, and of a first round; bytes of a node to rank 0
  in the first examination, at most 2 kB.
- with `--faults`: the link of one host has half of the rate, and another one loses its processes and its link
  in mid-run. The first must be a suspect, the second named, all others measured, and the run resumed.
- with `--throttle`, too: the processor time of a third one is limited to a quarter of what the others get.

Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from command import Command, status

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from accepted_hosts import limit_links, names, start_accept  # noqa: E402
from linked_hosts import LinkedHosts, NoHostsError, linked_hosts  # noqa: E402

BYTES_MOST = 2000
THROTTLED = 0.25
"""Part of an equal share of the cores."""


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


def with_faults(hosts: LinkedHosts, folder: Path, budget: str, throttle: bool) -> tuple[str, bool]:
    """What was found of a slow link, a throttled host and one that dies; and whether all was."""
    link, throttled, dying = (hosts.names[at] for at in (-3, -2, -1))
    limit_links(hosts, slow=link)
    if throttle:
        hosts.throttle(throttled, THROTTLED * (os.cpu_count() or 1) / len(hosts.names))
    process = start_accept(hosts, folder, ["--budget", budget, "-o", "run"])
    while process.poll() is None and sum(line.get("part") == "train" for line in journal(folder)) < 2:
        time.sleep(0.1)
    hosts.kill(dying)
    document, _ = finished(process)
    suspects = {one["name"]: one["cause"] for one in document["suspects"]}
    missing = [one["name"] for one in document["missing"]]
    hosts.revive(dying)
    limit_links(hosts, slow=link)
    resumed, _ = finished(start_accept(hosts, folder, ["--budget", budget, "--resume", "run"]))
    seen = throttled in suspects or not throttle
    right = link in suspects and seen and missing == [dying] and not resumed["missing"]
    others = sorted(set(suspects) - {link, throttled})
    cells = (
        suspects.get(link, "no"),
        suspects.get(throttled, "no") if throttle else "-",
        ", ".join(missing) or "no",
        "yes" if not resumed["missing"] else "no",
        ", ".join(others) or "none",
    )
    return " | ".join(cells), right and not others


def main() -> int:
    """Prints a line for each number of hosts."""
    parser = Command(__doc__, "--hosts 4 --budget 5s", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--budget", default="60s", help="of each run of accept")
    parser.add_argument("--faults", action="store_true", help="plant faults, and let a host die")
    parser.add_argument(
        "--throttle", action="store_true", help="with --faults: limit a host's processor time"
    )
    parser.add_argument("--table", type=Path, help="also written here")
    options = parser.parse_args()
    head = ["hosts", "whole (s)", "start (s)", "round (s)", "bytes of a node"]
    head += (
        ["slow link", "throttled", "lost", "resumed", "others suspected"] if options.faults else ["answer"]
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
                        answer, right = with_faults(hosts, folder, options.budget, options.throttle)
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
