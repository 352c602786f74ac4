"""A made-up MPI and probe for tests without timing: speaks docs/reference/protocol.md, misbehaves on demand.

FAKE_DIE, FAKE_HANG, FAKE_ERROR: `point:repetition` (repetition `*`: every one) at which the probe dies,
hangs, or answers an error. FAKE_RANKS, FAKE_LIBRARY, FAKE_PROTOCOL, FAKE_LAUNCHER change what it says of
itself; FAKE_MISSES is the share of TRIAD's cache misses that its counter sees (unset: it has no counter);
FAKE_REFUSES is a variant that the diffusion solver refuses, FAKE_CELLS a number of cells it cannot cut;
FAKE_DIVERGES is a task that the program of matrices does not solve;
FAKE_LOG names a file that gets a line for each unit asked for, FAKE_PIDS one for each start of the probe;
FAKE_SLEEP is the seconds a unit takes.
"""

import json
import os
import random
import sys
import time


def main():
    role, *words = sys.argv[1:]
    if role == "mpicxx":
        print("mpicxx: Open MPI 9.9.9 (Language: C++)")
    elif role == "mpirun":
        mpirun(words)
    elif role == "diffusion":
        diffusion(words[-1])
    elif role.startswith("kernels-"):
        kernels(words[-1])
    elif words[0] == "measure":
        measure()
    elif words[0] == "topology":
        with open(os.environ["FAKE_TOPOLOGY"]) as file:
            print(file.read())
    else:
        print(json.dumps({"load": {"status": "ok"}} if words[0] == "observe" else {"load": [0.0, 0.0, 0.0]}))


def mpirun(words):
    if words == ["--version"]:
        print(f"mpirun (Open MPI) {os.environ.get('FAKE_LAUNCHER', '9.9.9')}")
        return
    ranks = words[words.index("-n") + 1]
    os.environ.setdefault("FAKE_RANKS", ranks)
    program = words.index("measure") - 1
    os.execv(words[program], words[program:])


def hello():
    count = int(os.environ["FAKE_RANKS"])
    say(
        {
            "record": "hello",
            "protocol": int(os.environ.get("FAKE_PROTOCOL", "1")),
            "version": "0.1.0",
            "ranks": [{"rank": rank, "host": "fake", "pid": os.getpid()} for rank in range(count)],
            "mpi": {
                "library": os.environ.get("FAKE_LIBRARY", "Open MPI v9.9.9, fake"),
                "transport": "shm",
                **json.loads(os.environ.get("FAKE_MPI", "{}")),
            },
            "kernels": [],
        }
    )


def measure():
    print("a warning of the library, on stdout", flush=True)
    if "FAKE_PIDS" in os.environ:
        with open(os.environ["FAKE_PIDS"], "a") as file:
            file.write(f"{os.getpid()}\n")
    hello()
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            break
        log = os.environ.get("FAKE_LOG")
        if log:
            with open(log, "a") as file:
                file.write(f"{request['point']} {request['repetition']}\n")
        time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
        if wanted("FAKE_DIE", request):
            print("rank 1: out of luck", file=sys.stderr, flush=True)
            os._exit(7)
        if wanted("FAKE_HANG", request):
            time.sleep(3600)
        if wanted("FAKE_ERROR", request):
            error = {
                "record": "error",
                "field": "comp_cores",
                "value": "9",
                "message": "core 9 does not exist",
            }
            say({**error, "point": request["point"], "hint": "cores here: 0-1", "kind": "usage"})
            continue
        say(answer(request))


def wanted(name, request):
    point, _, repetition = os.environ.get(name, "").rpartition(":")
    return point and point in request["point"] and repetition in ("*", str(request["repetition"]))


def answer(request):
    """Values that depend on the unit alone: the same unit is always answered alike."""
    if "extraneous" in request:
        return accesses(request)
    wiggle = 1 + 0.001 * (request["repetition"] % 5)
    slow = {"AB": 0.7, "A": 1.0, "B": 1.0}
    memory = request["kernel"] not in ("prime", "none")
    phases = []
    for index, phase in enumerate(request["sequence"]):
        kept = slow.get(phase, 1.0) if memory and request["size"] > 1e6 else 1.0
        step = int(request["window"] * 1e9)
        found = {"phase": phase, "index": index, "status": "ok", "flags": [], "measured_s": request["window"]}
        found |= {"start_ns": index * step, "end_ns": (index + 1) * step, "observed": {"steal_s": 0.0}}
        if "A" in phase:
            rate = 10000.0 * kept * wiggle
            unit = "MB/s" if memory else "M/s"
            found["comp"] = {
                "rate": rate,
                "unit": unit,
                "per_core": [rate],
                "batches": [rate] * 3,
                "items": 1,
                "items_all": 10**6,
            }
            if "FAKE_MISSES" in os.environ:
                # TRIAD brings 24 bytes an item into the cache, in lines of 64.
                misses = float(os.environ["FAKE_MISSES"]) * 10**6 * 24 / 64
                found["observed"]["counters"] = {"llc_misses": misses}
        if "B" in phase:
            latency = request["metric"] == "latency"
            value = (2.0 / kept if latency else 5000.0 * kept) * wiggle
            found["comm"] = {
                "value": value,
                "unit": "us" if latency else "MB/s",
                "batches": [value] * 3,
                "messages": 3,
            }
        phases.append(found)
    head = {"record": "repetition", "point": request["point"], "repetition": request["repetition"]}
    return {**head, "status": "ok", "reason": "", "flags": [], "validated": True, "phases": phases}


def accesses(request):
    """One-way times of a machine whose floor of 0.16 us rises by a twentieth past an L1 of 48 KiB and by half
    past an L2 of 2 MiB, for the sender's accesses; the receiver's are a tenth less and scatter more.
    """
    asked = request["extraneous"]
    rng = random.Random(f"{request['point']}/{request['repetition']}")
    of = {"none": 0.0, "sender": 1.0, "receiver": 0.9, "both": 1.4, "bystanders": 0.05}[asked["who"]]
    wide = 0.10 if asked["who"] in ("receiver", "both") else 0.03
    phases = []
    for index, phase in enumerate(request["sequence"]):
        batches, misses = [], []
        for number in range(asked["count"]):
            size = asked["first"] + number * asked["step"]
            past = (0.05 * (size > 49152) + 0.5 * (size > 2097152)) * of if phase == "AB" else 0.0
            scatter = wide if phase == "AB" and size > 49152 else 0.02
            misses.append(min(8.0, size / 49152 * 8) if phase == "AB" else 0.0)
            for _ in range(asked["exchanges"]):
                batches.append(
                    round(0.16 * (1 + past + abs(rng.gauss(0, scatter)) + 0.002 * rng.random()), 6)
                )
        found = {"phase": phase, "index": index, "status": "ok", "flags": [], "measured_s": 0.01}
        found |= {"start_ns": index * 10**7, "end_ns": index * 10**7 + 10**7, "observed": {"steal_s": 0.0}}
        middle = sorted(batches)[len(batches) // 2]
        found["comm"] = {"value": middle, "unit": "us", "batches": batches, "messages": len(batches)}
        level = {"L1": misses, "L2": [0.5 * miss for miss in misses], "L3": [0.0 for _ in misses]}
        found["misses"] = {"source": "modelled", "sender": level, "receiver": level}
        phases.append(found)
    head = {"record": "repetition", "point": request["point"], "repetition": request["repetition"]}
    return {**head, "status": "ok", "reason": "", "flags": [], "validated": True, "phases": phases}


def diffusion(config):
    """The solver of apps/diffusion: a step is 0.1 ms of separator, 2 ms of interior, 0.3 ms of exchange and
    0.01 ms of barrier; overlapped, interior and exchange take 1.1 and 1.2 times as long.
    """
    with open(config) as file:
        asked = json.load(file)["program"]
    if wanted_cells(asked):
        error = {"kind": "usage", "field": "cells", "value": "1", "message": "too few", "hint": "more"}
        say({"record": "error", "point": "", **error})
        sys.exit(2)
    hello()
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("op") == "quit":
            break
        variant = request["variant"]
        if variant == os.environ.get("FAKE_REFUSES"):
            error = {"kind": "machine", "field": "variant", "value": variant, "message": "not today"}
            say({"record": "error", "point": request["point"], **error, "hint": "ask tomorrow"})
            continue
        say(stepped(asked, request))


def stepped(asked, request):
    together = request["variant"] == "overlap"
    inner, outer = 2e3 * (1.1 if together else 1), 3e2 * (1.2 if together else 1)
    separator = 0.0 if request["variant"] == "communication" else 1e2
    computing = {"comp": inner, "separator": separator}
    phases = {
        "none": {"A": computing},
        "communication": {"B": {"comm": outer}},
        "apart": {"A": computing, "B": {"comm": outer}},
        "overlap": {"AB": computing | {"comm": outer}},
    }[request["variant"]]
    parts = [sides[side] for sides in phases.values() for side in ("comp", "comm") if side in sides]
    busy = max(parts) if together else sum(parts)
    next(iter(phases.values()))["total"] = separator + busy + 10
    head = {"record": "repetition", "point": request["point"], "repetition": request["repetition"]}
    return {
        **head,
        "status": "ok",
        "reason": "",
        "flags": [],
        "facts": {
            "cells": asked["cells"],
            "step_bytes": 32 * asked["cells"],
            "step_flops": 12.0 * (asked["cells"] // 2),
            "total_bytes": 16000,
            "average_bytes": 8000.0,
            "largest_bytes": 8000,
            "largest_message": 8000,
            "messages": 1,
        },
        "phases": [
            {
                "phase": phase,
                "index": index,
                "status": "ok",
                "flags": [],
                "measured_s": 0.01,
                **{
                    side: {
                        "rate" if side == "comp" else "value": value,
                        "unit": "us",
                        "batches": [value] * request["steps"],
                    }
                    for side, value in sides.items()
                },
            }
            for index, (phase, sides) in enumerate(phases.items())
        ],
    }


def kernels(config):
    """The program of apps/kernels: sends keep 0.4 beside dense CG, 0.5 beside sparse, 0.9 beside GEMM."""
    with open(config) as file:
        asked = json.load(file)["program"]
    hello()
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("op") == "quit":
            break
        say(solved(asked, request))


def solved(asked, request):
    wiggle = 1 + 0.001 * (request["repetition"] % 5)
    head = {"record": "repetition", "point": request["point"], "repetition": request["repetition"]}
    if asked["task"] == os.environ.get("FAKE_DIVERGES"):
        return {**head, "status": "failed", "reason": f"no convergence in {asked['iterations']} iterations"}
    kept = {"cg": 0.4, "cg-sparse": 0.5, "gemm": 0.9}[asked["task"]]
    rate, value = 4000.0 * wiggle, 5000.0 * wiggle
    found = {
        "A": {"comp": {"rate": rate, "unit": "Mflop/s"}, "total": {"value": 1e6, "unit": "us"}},
        "B": {"comm": {"value": value, "unit": "MB/s"}},
        "AB": {
            "comp": {"rate": rate * 0.95, "unit": "Mflop/s"},
            "comm": {"value": value * kept, "unit": "MB/s"},
            "total": {"value": 2e6 / wiggle, "unit": "us"},
        },
    }
    phases = [
        {"phase": phase, "index": index, "status": "ok", "flags": [], "measured_s": 0.01, **found[phase]}
        for index, phase in enumerate(request["sequence"])
    ]
    facts = {
        "order": asked["order"],
        "arithmetic_intensity": 0.25,
        "residual": 1e-13,
        "relative_error": 2e-13,
    }
    return {
        **head,
        "status": "ok",
        "flags": [],
        "phases": phases,
        "facts": {**facts, "stalled_modelled": 0.6},
    }


def wanted_cells(asked):
    return os.environ.get("FAKE_CELLS") == str(asked["cells"])


def say(record):
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


main()
