"""Stand-ins for tests of `elbowroom trace`: a reader that says what a file holds, a program that "records".

The reader answers `check`, `stat`, `sync` and `merge` from the JSON documents below; the program writes what
a process leaves when its recorder stops.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

CHECK: dict[str, Any] = {
    "schema": "elbowroom/trace-check",
    "version": 1,
    "events": 1200,
    "kept": 1150,
    "lost": 50,
    "messages": 40,
    "tachyons": 2,
    "suspect": 1,
    "unmatched": 0,
    "ranks": 2,
    "threads": 3,
    "missing": [],
    "killed": [1],
    "monotone": True,
    "sync_points": 2,
    "worst_error_ns": 830,
    "duration_ns": 2_000_000_000,
    "damage": [{"file": "rank-00001.thread-00000.ring", "what": "ends after 150 of 200 events"}],
    "doubts": ["2 of 40 messages arrive before they were sent"],
    "warnings": [
        "rank-00001.thread-00000.ring: ends after 150 of 200 events",
        "rank 1 was killed before its trace was stopped; 1 of its threads were recovered from memory",
    ],
    "pairs": [
        {"from": 0, "to": 1, "messages": 20, "tachyons": 2, "suspect": 1, "floor_ns": 410},
        {"from": 1, "to": 0, "messages": 20, "tachyons": 0, "suspect": 0, "floor_ns": None},
    ],
}

STAT: dict[str, Any] = {
    "duration_ns": 2_000_000_000,
    "bin_ns": 1_000_000_000,
    "types": [
        {
            "name": "solve",
            "category": "task",
            "fields": [None, "task", None],
            "events": 800,
            "per_bin": [500, 300],
            "begins": 400,
            "ends": 400,
            "total_ns": 1_500_000_000,
            "whole": 400,
            "longest_ns": 9_000_000,
        },
        {
            "name": "MPI_Send",
            "category": "mpi",
            "fields": ["tag", None, None],
            "events": 350,
            "per_bin": [0, 350],
            "begins": 0,
            "ends": 0,
            "total_ns": 0,
            "bytes": 350 * 4096,
        },
        {"name": "mask", "category": "trace", "fields": [], "events": 0, "per_bin": [0, 0]},
    ],
    "threads": [
        {"rank": 0, "thread": 0, "name": "main", "kept": 600, "lost": 0, "recorded": 600},
        {"rank": 0, "thread": 1, "name": "worker", "kept": 400, "lost": 0, "recorded": 400},
        {"rank": 1, "thread": 0, "name": "main", "kept": 150, "lost": 50, "recorded": 200},
    ],
    "ranks": [
        {
            "rank": rank,
            "host": f"node{rank}",
            # Rank 1 was killed, and could not tell.
            "event_ns": None if rank else 12.0,
            "overhead_ns": None if rank else 12.0 * events,
            "advised_bytes": None if rank else 32768,
            "by_category": [
                {"name": "task", "events": events // 2, "overhead_ns": None if rank else 6.0 * events},
                {"name": "mpi", "events": events // 4, "overhead_ns": None if rank else 3.0 * events},
            ],
        }
        for rank, events in ((0, 1000), (1, 200))
    ],
}

SYNC: dict[str, Any] = {
    "ranks": [
        {"rank": 0, "host": "node0", "points": [], "segments": [], "flags": []},
        {
            "rank": 1,
            "host": "node1",
            "points": [
                {"local": 0, "offset": 12_300, "low": 12_200, "high": 12_400, "used": True},
                {"local": 10**9, "offset": 99_000, "low": 98_900, "high": 99_100, "used": False},
                {"local": 2 * 10**9, "offset": 12_340, "low": 12_300, "high": 12_380, "used": True},
            ],
            "segments": [
                {"from": 0, "to": 2 * 10**9, "offset_ns": 12_300, "drift_ppb": 20.0, "error_ns": 830.0}
            ],
            "flags": ["outlier"],
        },
    ]
}

_READER = """
import json, os, signal, sys, time
from pathlib import Path
documents = json.loads(Path(__file__).with_name("documents.json").read_text())
words = sys.argv[1:]
Path(__file__).with_name("words.json").write_text(json.dumps(words))
if "refusal" in documents:
    print(documents["refusal"][1], file=sys.stderr)
    sys.exit(documents["refusal"][0])
if "signal" in documents:
    os.kill(os.getpid(), documents["signal"])
if "--progress" in words:
    print("progress 1 2\\nprogress 2 2", file=sys.stderr)
if words[0] == "merge":
    out = words[words.index("-o") + 1]
    Path(out).write_text("merged")
print(json.dumps(documents["check" if words[0] == "merge" else words[0]]))
sys.exit(documents.get("code", 0))
"""

_PROGRAM = """
import json, os, sys, time
from pathlib import Path
where = os.environ.get("ELBOW_TRACE_DIRECTORY")
names = os.environ.get("ELBOW_TRACE_CATEGORIES", "mpi,task").split(",")
events = {"mpi": 100, "task": 300}
if where:
    kept = {name: events.get(name, 0) for name in names}
    records = [{"record": "trace", "version": 1}]
    for number, name in enumerate(events):
        records.append({"record": "category", "number": number, "name": name})
        records.append({"record": "type", "number": number, "name": f"a {name}", "category": number})
    end = {"record": "end", "advised_bytes": 4096}
    end["lost"] = int(os.environ.get("STAND_IN_LOST", "0"))
    end["recorded"] = sum(kept.values()) + end["lost"]
    end["types"] = [{"type": number, "kept": kept.get(name, 0)} for number, name in enumerate(events)]
    lines = [json.dumps(record) for record in [*records, end]]
    Path(where, "rank-00000.jsonl").write_text("\\n".join(lines) + "\\n")
print("threads", os.environ.get("OMP_NUM_THREADS", "-"), "took 2.5 s")
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


def script(path: Path, text: str) -> Path:
    """A program of Python's at `path`."""
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def reader(folder: Path, **documents: Any) -> Path:
    """A trace-reader; `documents` replace those above. It keeps its words in words.json beside it."""
    told = {"check": CHECK, "stat": STAT, "sync": SYNC} | documents
    (folder / "documents.json").write_text(json.dumps(told))
    return script(folder / "trace-reader", _READER)


def program(folder: Path) -> Path:
    """A program that records 300 events of `task` and 100 of `mpi`; its argument is its exit code."""
    return script(folder / "app", _PROGRAM)


def recorded(folder: Path) -> Path:
    """A directory that has a trace, as far as its names tell."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rank-00000.jsonl").write_text('{"record": "trace"}\n')
    return folder
