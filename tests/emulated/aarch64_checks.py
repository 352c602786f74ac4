"""The checks of aarch64.sh, which has entered the arm64 root's namespaces: each runs programs in the root.

aarch64_checks.py FOLDER     FOLDER has root/, native/, recorder/ and python/
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from checks import Checks, expect

REPOSITORY = Path(__file__).resolve().parents[2]
PROCESSORS = {"cortex-a72": "NEON", "max": "NEON, and SVE where Highway has it"}
"""Processors that qemu-user emulates, and the vectors they have."""

NATIVE_TESTS = (
    "core_tests", "core/simulate/simulate_tests", "lib/clock/clock_tests", "lib/broadcast/broadcast_tests",
    "lib/taskflow/taskflow_tests", "lib/trace/trace_tests", "lib/trace/merge/trace_reader_tests",
    "lib/pmpi/tests/pmpi_tests", "lib/nic/nic_tests", "lib/predict/predict_tests",
    "lib/profile/profile_tests",
    "apps/diffusion/diffusion_tests", "apps/kernels/kernels_tests", "apps/minikernels/minikernels_tests",
)  # fmt: skip

PING_PONG = {
    "op": "measure", "point": "aarch64", "repetition": 0, "sequence": ["A", "B", "AB"],
    "kernel": "triad", "cursor": 1, "comp_cores": [0], "comp_node": 0, "computing_ranks": "first",
    "working_set": 3 << 20, "pattern": "pingpong", "size": 1 << 16, "comm_node": 0, "comm_cores": [1],
    "peer_cores": [1], "reuse": "same", "metric": "bandwidth", "window": 0.3,
    "steady": {"window": 7, "cov": 0.05, "limit": 2.0}, "observe": [],
}  # fmt: skip
"""A repetition of the probe (docs/reference/protocol.md)."""


class Machine:
    """The arm64 root, as a machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.native = folder / "native"
        self.probe = str(self.native / "probe")
        mca = {
            "pml": "ob1", "btl": "self,vader", "btl_vader_single_copy_mechanism": "none",
            "mpi_yield_when_idle": "1",
        }  # fmt: skip
        options = [word for key, value in mca.items() for word in ("--mca", key, value)]
        self.mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *options)

    def run(
        self,
        *words: str,
        cpu: str = "max",
        patience: float = 1800,
        text: str = "",
        codes: Sequence[int] = (0,),
    ) -> str:
        """What a command prints on stdout; it must end with one of `codes`."""
        native = self.native
        environment = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8", "QEMU_CPU": cpu,
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OPENBLAS_NUM_THREADS": "1",
            "XDG_CACHE_HOME": "/tmp/cache", "MPLCONFIGDIR": "/tmp/cache", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{REPOSITORY / 'src'}:{self.folder / 'python'}", "ELBOWROOM_PROBE": self.probe,
            "ELBOWROOM_TRACE_LIBRARIES": str(self.folder / "recorder" / "preload"),
            "ELBOWROOM_TRACE_READER": str(native / "lib/trace/merge/trace-reader"),
        }  # fmt: skip
        line = ("chroot", str(self.folder / "root"), *words)
        ended = subprocess.run(
            line, input=text, capture_output=True, text=True, timeout=patience, check=False, env=environment
        )
        if ended.returncode not in codes:
            end = "\n".join((ended.stdout + ended.stderr).splitlines()[-15:])
            raise AssertionError(f"{' '.join(words[:6])}: exit code {ended.returncode}\n{end}")
        return ended.stdout

    def elbowroom(self, *words: str, codes: Sequence[int] = (0,)) -> str:
        """The same of elbowroom by the root's own Python."""
        return self.run("python3", "-m", "elbowroom", *words, codes=codes)


def lines(text: str) -> Iterator[dict[str, Any]]:
    """The JSON lines of a text."""
    return (json.loads(line) for line in text.splitlines() if line.startswith("{"))


def check_programs(checks: Checks, machine: Machine) -> None:
    def is_aarch64() -> str:
        header = Path(machine.probe).read_bytes()[:20]
        expect(header[18:20] == b"\xb7\x00", "the probe is not an aarch64 executable")
        return machine.run("uname", "-m").strip()

    checks.run("the root runs aarch64 programs", is_aarch64)
    for name in NATIVE_TESTS:
        checks.run(
            f"native tests: {name}", lambda name=name: last_line(machine.run(str(machine.native / name)))
        )
    checks.run(
        "native tests over MPI: exchange_tests, 2 ranks",
        lambda: last_line(machine.run(*machine.mpirun, "-n", "2", str(machine.native / "exchange_tests"))),
    )


def last_line(text: str) -> str:
    """What doctest says at its end."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def check_machine_code(checks: Checks, machine: Machine) -> None:
    """tests/mpi/test_kernels.py, which disassembles, of this probe."""

    def disassemble() -> str:
        tools = machine.folder / "tools"
        tools.mkdir(exist_ok=True)
        link = tools / "objdump"
        link.unlink(missing_ok=True)
        link.symlink_to("/usr/bin/aarch64-linux-gnu-objdump")
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/mpi/test_kernels.py"],
            cwd=REPOSITORY, capture_output=True, text=True, check=False,
            env={**os.environ, "ELBOWROOM_PROBE": machine.probe, "PATH": f"{tools}:{os.environ['PATH']}"},
        )  # fmt: skip
        expect(ended.returncode == 0, ended.stdout[-1500:])
        return last_line(ended.stdout)

    checks.run("loops' machine code: stores past the cache, whole vectors, no calls", disassemble)


def check_probe(checks: Checks, machine: Machine) -> None:
    table = json.loads((REPOSITORY / "src/elbowroom/plan/kernels.json").read_text())

    def same_table() -> str:
        expect(
            json.loads(machine.run(machine.probe, "kernels")) == table,
            "the probe's table is not kernels.json",
        )
        return f"{len(table)} kernels"

    def topology() -> str:
        root = xml.fromstring(machine.run(machine.probe, "topology", "--xml", "-"))
        units = [one for one in root.iter("object") if one.get("type") == "PU"]
        expect(len(units) >= 1, "no PU in the topology")
        return f"{len(units)} processing units"

    def clock() -> str:
        said = json.loads(machine.run(machine.probe, "clock"))
        expect(said["call_ns"] > 0 and said["resolution_ns"] > 0, str(said))
        return str(said["source"])

    def misses() -> str:
        words = "misses --who sender --access write --size 400 --first 0 --step 400 --count 5 --cores 0,1"
        said = json.loads(machine.run(machine.probe, *words.split()))
        expect(said["record"] == "misses" and "after" in said, str(said))
        return "modelled"

    checks.run("probe kernels: the table that Python has", same_table)
    checks.run("probe topology", topology)
    checks.run("probe clock", clock)
    checks.run("probe state", lambda: f"{len(json.loads(machine.run(machine.probe, 'state')))} entries")
    checks.run("probe observe", lambda: f"{len(json.loads(machine.run(machine.probe, 'observe')))} observers")
    checks.run("probe misses: the model of caches", misses)
    for cpu, vectors in PROCESSORS.items():
        for kernel in table:
            name = kernel["name"]
            checks.run(
                f"kernel {name} on {cpu} ({vectors})",
                lambda name=name, cpu=cpu: run_kernel(machine, name, cpu),
            )


def run_kernel(machine: Machine, name: str, cpu: str) -> str:
    """Two repetitions; the probe validates what the kernel computed, and fails where it is wrong."""
    words = (
        "kernel",
        "--kernel",
        name,
        "--cores",
        "0",
        "--node",
        "0",
        "--working-set",
        "3MiB",
        "--seconds",
        "0.1",
        "--repeat",
        "2",
    )
    try:
        said = list(lines(machine.run(machine.probe, *words, cpu=cpu)))
    except AssertionError as error:
        # fma256 and fma512 ask for vectors that not every processor has.
        if name.startswith("fma") and "of this core has none" in str(error):
            return "refused: " + last_line(str(error))
        raise
    expect(len(said) == 2, f"{len(said)} records of 2")
    return str(said[0]["bytes"]["instruction"])


def check_measure(checks: Checks, machine: Machine) -> None:
    def measure() -> str:
        text = json.dumps(PING_PONG) + '\n{"op": "quit"}\n'
        hello, answer = list(
            lines(machine.run(*machine.mpirun, "-n", "2", machine.probe, "measure", text=text))
        )[:2]
        expect(len(hello["ranks"]) == 2, str(hello))
        expect(answer["record"] == "repetition", str(answer))
        together = answer["phases"][2]
        expect(together["comm"]["messages"] > 0 and together["comp"]["rate"] > 0, str(together))
        return f"{hello['mpi']['transport']}, {hello['clock']['source']}, flags {answer.get('flags')}"

    checks.run("probe measure with 2 ranks: A, B and AB, messages checked", measure)


def check_elbowroom(checks: Checks, machine: Machine) -> None:
    runs = machine.folder / "runs"
    subprocess.run(["rm", "-rf", str(runs)], check=True)
    runs.mkdir()
    trace = str(runs / "trace")
    launch = ("--", *machine.mpirun, "-n", "2", str(machine.folder / "stepped"), "100", "2000", "plain")

    def doctor() -> str:
        found = json.loads(machine.elbowroom("doctor", "--mpi", "openmpi", "--json", codes=(0, 1, 3)))
        return json.dumps(found)[:200]

    def run() -> str:
        short = (
            "--sizes 4,64KiB --kernels triad --repeat 2 --set window=0.05 --set working_set=4MiB --no-open"
        )
        words = ("run", "cores", "--mpi", "openmpi", *short.split(), "--out", str(runs / "cores"))
        return last_line(machine.elbowroom(*words, codes=(0, 3)))

    checks.run("elbowroom doctor", doctor)
    checks.run("elbowroom run cores: ends with 0 or 3", run)
    checks.run(
        "elbowroom show", lambda: f"{len(machine.elbowroom('show', str(runs / 'cores')).splitlines())} lines"
    )
    checks.run(
        "trace record of a program of 2 ranks",
        lambda: last_line(machine.elbowroom("trace", "record", "-o", trace, *launch)),
    )
    checks.run("trace check", lambda: last_line(machine.elbowroom("trace", "check", trace)))
    checks.run(
        "trace merge",
        lambda: last_line(machine.elbowroom("trace", "merge", trace, "-o", str(runs / "t.json"))),
    )


def main() -> int:
    machine = Machine(Path(sys.argv[1]))
    with Checks(machine.folder / "summary.log", "aarch64 under qemu-user") as checks:
        check_programs(checks, machine)
        check_machine_code(checks, machine)
        check_probe(checks, machine)
        check_measure(checks, machine)
        check_elbowroom(checks, machine)
    return checks.code


if __name__ == "__main__":
    sys.exit(main())
