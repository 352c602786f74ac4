"""Two emulated machines as two hosts: a kernel and a clock of their own each, joined by a socket network.

    python3 tests/emulated/two_hosts.py [--image FOLDER] [--only NAME,NAME]     as root; about an hour

The image is image.sh's; --programs names native programs, built for Debian's Open MPI, that are newer than
those of the image. IMAGE/two-hosts gets the guests, and summary.log with a line for each check. The exit code
is 0 only if every check passed. Both hosts share this machine's cores, so that no rate means anything.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from checks import Checks, expect
from pair import ADDRESSES, COMMON, Pair, running

REPOSITORY = Path(__file__).resolve().parents[2]

TINY = (
    "--sizes 4,64KiB --kernels triad --repeat 2 --set window=0.3 --set working_set=4MiB"
    " --comp-cores 0 --comm-core 1"
    " --no-report --no-open --json"
)
"""The least that a run measures: what it measures means nothing here."""
TCP = "OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self"
"""Named, so that the probe can name the transport."""
VERBS = (
    "OMPI_MCA_pml=ucx UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=1"
    # Of a datagram over IPv4, UCX 1.13 finds no destination where rxe writes it, and drops it.
    " UCX_UD_ETH_DGID_CHECK=n"
)
RUN = "run {plan} --mpi openmpi --hosts a,b " + TINY + " --out /root/{name}"


def last_object(text: str) -> dict[str, Any]:
    """The JSON object that a command with --json prints, among what else it prints."""
    start = 0 if text.startswith("{") else text.find("\n{") + 1
    expect(text[start : start + 1] == "{", f"no JSON in: {text[-300:]}")
    found: dict[str, Any]
    found, _ = json.JSONDecoder().raw_decode(text[start:])
    return found


def measured(text: str) -> str:
    """The hosts, transport and points of a run's summary, all of which must have been measured."""
    run = last_object(text)
    states = {point["status"] for point in run["points"]}
    expect(run["machine"]["hosts"] == 2, f"hosts: {run['machine']['hosts']}")
    expect(bool(states) and states <= {"ok", "not_stable"}, f"points: {states}")
    return f"{len(run['points'])} points {'/'.join(sorted(states))}, transport {run['mpi']['transport']}"


def run(pair: Pair, environment: str, plan: str, name: str) -> str:
    """Measures a plan on both hosts."""
    line = pair.line(RUN.format(plan=plan, name=name), environment)
    return measured(pair.run(line, patience=1800, codes=(0, 3)))


def check_hosts(checks: Checks, pair: Pair) -> None:
    """Two kernels that reach each other."""

    def kernels() -> str:
        first, second = (
            pair.run("cat /proc/sys/kernel/random/boot_id; uname -r", name).split() for name in "ab"
        )
        expect(first[0] != second[0], "both hosts are the same boot of a kernel")
        return f"Linux {first[1]} and {second[1]}, boots {first[0][:8]} and {second[0][:8]}"

    def reaches() -> str:
        names = [pair.run(f"ssh {other} hostname", name).strip() for name, other in ("ab", "ba")]
        expect(names == ["b", "a"], str(names))
        return "ssh both ways"

    checks.run("each host has a kernel of its own", kernels)
    checks.run("each host reaches the other", reaches)


def check_mpiexec(checks: Checks, pair: Pair) -> None:
    """Runs over TCP, started by mpiexec."""

    def doctor() -> str:
        found = last_object(pair.elbowroom("doctor --mpi openmpi --json", codes=(0, 1, 3)))
        return ", ".join(f"{one['name']} {one['status']}" for one in found["checks"])

    checks.run("doctor", doctor)
    # Of Open MPI's ob1 one communication thread is all that is measured.
    for plan, name in (("cores", "cores"), ("ring --set comm_threads=1", "ring")):
        checks.run(f"run {plan} --hosts a,b", lambda plan=plan, name=name: run(pair, TCP, plan, name))


def check_trace(checks: Checks, pair: Pair) -> None:
    """A program on both hosts, on one clock."""
    synced: list[dict[str, Any]] = []
    build = f"mpicc.openmpi -o {COMMON}/stepped /root/elbowroom/tests/mpi/stepped.c"
    checks.run("the traced program compiles", lambda: pair.run(build) or "stepped.c")
    for name in ("first", "second"):
        checks.run(f"trace record, {name} job", lambda name=name: record(pair, name))
        checks.run(
            f"trace check, {name} job: no message arrives before it left",
            lambda name=name: check_messages(pair, name),
        )
        checks.run(f"trace sync, {name} job", lambda name=name: sync(pair, name, synced))
    checks.run("clocks: both jobs agree within their bounds", lambda: agreement(synced))
    checks.run("trace merge", lambda: merge(pair, "first"))


def record(pair: Pair, name: str) -> str:
    mpirun = "mpirun.openmpi --allow-run-as-root --host a,b -n 2"
    program = f"{COMMON}/stepped 400 20000 plain"
    words = f"trace record --mpi openmpi --sync 1 -o {COMMON}/{name} -- {mpirun} {program}"
    text = pair.run(pair.line(words, TCP))
    return next((line.strip() for line in text.splitlines() if "preloaded" in line), "recorded")


def check_messages(pair: Pair, name: str) -> str:
    found = last_object(pair.elbowroom(f"trace check --json {COMMON}/{name}", codes=(0, 3)))
    keys = ("messages", "tachyons", "suspect", "unmatched", "sync_points", "worst_error_ns")
    seen = json.dumps({key: found[key] for key in keys})
    expect(found["messages"] > 0, f"no message was recorded: {seen}")
    expect(found["tachyons"] == 0, f"messages arrive before they left: {seen}")
    expect(not found["doubts"], f"not trusted: {found['doubts']}")
    return seen


def sync(pair: Pair, name: str, synced: list[dict[str, Any]]) -> str:
    found = last_object(pair.elbowroom(f"trace sync --json {COMMON}/{name}"))
    other = found["ranks"][1]
    expect(other["host"] == "b" and len(other["points"]) >= 2, str(other)[:300])
    synced.append(other)
    point = other["points"][0]
    return f"b is {point['offset'] / 1e9:.6f} s away, known to {half_width(point) / 1000:.0f} us"


def half_width(point: dict[str, Any]) -> float:
    """How wrong a comparison of clocks may be, in ns."""
    return float(point["high"] - point["low"]) / 2


def agreement(synced: Sequence[dict[str, Any]]) -> str:
    """Both jobs determined the offset of the same two clocks, some time apart: the line through the first
    job's comparisons, extended to the second job, must meet it. Errors grow with the reach.
    """
    expect(len(synced) == 2, "there are not two jobs")
    begin, end, later = synced[0]["points"][0], synced[0]["points"][-1], synced[1]["points"][0]
    span, ahead = end["local"] - begin["local"], later["local"] - end["local"]
    drift = (end["offset"] - begin["offset"]) / span
    apart = abs(later["offset"] - end["offset"] - drift * ahead)
    grown = (half_width(begin) + half_width(end)) * ahead / span
    bound = half_width(end) + half_width(later) + grown
    seen = f"{apart / 1000:.1f} us apart after {ahead / 1e9:.0f} s, bounds {bound / 1000:.1f} us"
    expect(apart <= bound, seen)
    return f"{seen}, drift {drift * 1e9:.0f} ppb"


def merge(pair: Pair, name: str) -> str:
    pair.elbowroom(f"trace merge {COMMON}/{name} -o {COMMON}/{name}.json")
    events = json.loads((pair.common / f"{name}.json").read_text())["traceEvents"]
    processes = {event.get("pid") for event in events}
    expect(len(processes) >= 2, f"processes: {processes}")
    return f"{len(events)} events of {len(processes)} processes"


def check_slurm(checks: Checks, pair: Pair) -> None:
    """Slurm's daemons on both hosts."""

    def both() -> str:
        pair.run("until [ $(sinfo -h -t idle -o %D) = 2 ]; do sleep 2; done", patience=300)
        names = pair.run("srun -N2 --ntasks-per-node=1 hostname").split()
        expect(sorted(names) == ["a", "b"], str(names))
        return "a b"

    for name in "ab":
        checks.run(f"Slurm's daemons on {name}", lambda name=name: pair.start_slurm(name))
    checks.run("srun starts a task on each node", both)
    words = f"run cores --mpi openmpi --launcher srun {TINY} --out /root/slurm"
    line = f"salloc -N2 --exclusive {pair.line(words, TCP)}"
    checks.run("run cores by srun", lambda: measured(pair.run(line, patience=1800, codes=(0, 3))))


def check_verbs(checks: Checks, pair: Pair) -> None:
    """Verbs in software, by the kernel's rdma_rxe."""

    def load(name: str) -> str:
        link = f"$(ip -o -4 address | awk '/{ADDRESSES[name]}/ {{print $2}}')"
        pair.run(f"modprobe rdma_rxe && rdma link add rxe0 type rxe netdev {link}", name)
        return pair.run("rdma link", name).strip()

    def ping_pong() -> str:
        program = "ibv_ud_pingpong -d rxe0 -g 1 -n 100"
        answer = pair.guests["b"].begin(program)
        text = pair.run(f"sleep 10; {program} b")
        expect(answer.wait(300).status == 0, answer.output)
        return text.strip().splitlines()[-1]

    def measure() -> str:
        before = packets()
        seen = run(pair, VERBS, "cores", "verbs")
        crossed = packets() - before
        expect("transport verbs" in seen, seen)
        expect(crossed > 1000, f"only {crossed} packets were sent by rxe0")
        return f"{seen}; rxe0 sent {crossed} packets"

    def packets() -> int:
        return int(pair.run("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"))

    for name in "ab":
        checks.run(f"rdma_rxe on {name}", lambda name=name: load(name))
    checks.run("ping-pong by verbs over rxe", ping_pong)
    checks.run("run cores over verbs: the transport is named", measure)


def check_power(checks: Checks, pair: Pair) -> None:
    """A host that is switched off in mid-run."""
    journal = "/root/cut/samples.jsonl"

    def cut() -> str:
        words = RUN.format(plan="cores", name="cut").replace("--repeat 2", "--repeat 10 --timeout 60")
        begun = pair.guests["a"].begin(pair.line(words, TCP))
        # Asked of the host it would wait for the ranks, whose priority is higher.
        end = time.monotonic() + 1800
        while not re.search(r"\d+ of \d+ repetitions", begun.output):
            expect(time.monotonic() < end, f"nothing is measured: {begun.output[-400:]}")
            time.sleep(1)
        pair.guests["b"].kill()
        done = begun.wait(1800)
        seen = f"exit code {done.status}: {done.output.strip()[-400:]}"
        expect(done.status not in (0, 2) and "Traceback" not in done.output, seen)
        return seen

    def resume() -> str:
        before = int(pair.run(f"wc -l <{journal}"))
        pair.start("b")
        words = "run --resume /root/cut --retry-failed --no-report --no-open --json"
        seen = measured(pair.run(pair.line(words, TCP), patience=3600, codes=(0, 3)))
        after = int(pair.run(f"wc -l <{journal} || echo 0"))
        return f"{seen}; {before} lines of the journal before, {after} after"

    if checks.run("a host is switched off in mid-run: the run ends with a sentence", cut):
        checks.run("after a boot the run resumes", resume)


GROUPS: dict[str, Callable[[Checks, Pair], None]] = {
    "hosts": check_hosts,
    "mpiexec": check_mpiexec,
    "trace": check_trace,
    "slurm": check_slurm,
    "verbs": check_verbs,
    "power": check_power,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks of two emulated machines as two hosts.")
    default = REPOSITORY / "build" / "emulated"
    parser.add_argument("--image", type=Path, default=default, help="folder of image.sh")
    parser.add_argument("--only", default=",".join(GROUPS), help=f"groups of checks: {','.join(GROUPS)}")
    parser.add_argument("--programs", type=Path, help="a folder with probe, trace-reader and preload/ to use")
    given = parser.parse_args()
    image = given.image.absolute()
    with running(image, image / "two-hosts") as pair:
        if given.programs:
            pair.use_programs(given.programs)
        title = f"two hosts under {pair.guests['a'].accelerator}"
        with Checks(image / "two-hosts" / "summary.log", title) as checks:
            for name in given.only.split(","):
                GROUPS[name](checks, pair)
    return checks.code


if __name__ == "__main__":
    sys.exit(main())
