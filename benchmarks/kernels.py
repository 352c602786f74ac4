"""Kernels of the probe against those of likwid-bench: same core, same working set, same pages, interleaved.

    python benchmarks/kernels.py [--repeat 9] [--core 1] [--working-set 1GiB] [--kernels triad,load] [--json]

Prints the ratio probe / likwid-bench of the medians with its paired bootstrap interval, for each kernel.
Absolute rates are shown to see that the run was sane; only the ratios are results.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from command import Command, status

from elbowroom.errors import MachineError
from elbowroom.launch.build import probe
from elbowroom.stats.interval import Kept, Summary
from elbowroom.stats.summary import kept, summarise

# likwid's `triad` has four arrays; what everybody else calls triad is its `stream`. Our `load` adds what it
# reads, so that a damaged value is noticed, as its `sum` does; its `load` drops it. By instruction set:
# AVX-512, AVX with FMA, none of them.
PEERS = {
    "memset_nt": ("store_mem_avx512", "store_mem_avx", "store_mem"),
    "load": ("sum_avx512", "sum_avx", "sum"),
    "copy": ("copy_avx512", "copy_avx", "copy"),
    "copy_nt": ("copy_mem_avx512", "copy_mem_avx", "copy_mem"),
    "triad": ("stream_avx512_fma", "stream_avx_fma", "stream"),
    "triad_nt": ("stream_mem_avx512", "stream_mem_avx_fma", "stream_mem"),
    "load_cache": ("sum_avx512", "sum_avx", "sum"),
    "triad_cache": ("stream_avx512_fma", "stream_avx_fma", "stream"),
    "fma": ("peakflops_avx512_fma", "peakflops_avx_fma", "peakflops"),
}
FIRST_LEVEL_KB = 16  # likwid's peakflops reads its operands: they must stay in the first-level cache
THP_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PR_SET_THP_DISABLE = 41  # linux/prctl.h


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel: both sides' rates and their ratio, or the reason why there is none."""

    kernel: str
    peer: str
    probe: Summary | None = None
    likwid: Summary | None = None
    ratio: Kept | None = None
    reason: str = ""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What both sides share. `small_pages`: the probe gets no huge pages, as likwid-bench on this machine."""

    core: int
    node: int
    working_set_kb: int
    seconds: float
    small_pages: bool


def bytes_of(text: str) -> int:
    match = re.fullmatch(r"(\d+) *(k|M|G)?(i)?B?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write 1GiB, 64MB or a number of bytes")
    base = 1024 if match[3] else 1000
    return int(match[1]) * int(base ** ("_kMG".index(match[2]) if match[2] else 0))


def cpu_line(field: str) -> str:
    """A field of the first core in /proc/cpuinfo, empty when it is not there."""
    match = re.search(rf"^{field}\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1] if match else ""


def peer_of(kernel: str) -> str:
    flags = cpu_line("flags").split()
    if platform.machine() != "x86_64":
        return PEERS[kernel][2]
    return PEERS[kernel][0 if "avx512f" in flags else 1 if "fma" in flags else 2]


def second_level_kb(core: int) -> int:
    """The core's share of its second-level cache in kB of 1000 bytes; 256 KiB when sysfs does not say."""
    for cache in sorted(Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
        if (cache / "level").read_text().strip() == "2":
            sharers = bin(int((cache / "shared_cpu_map").read_text().replace(",", ""), 16)).count("1")
            siblings = Path(f"/sys/devices/system/cpu/cpu{core}/topology/core_cpus").read_text()
            per_core = max(1, sharers // bin(int(siblings.replace(",", ""), 16)).count("1"))
            return int((cache / "size").read_text().strip().removesuffix("K")) * 1024 // per_core // 1000
    return 256 * 1024 // 1000


def huge_pages_mode() -> str:
    """always, madvise or never; `unknown` where the kernel does not say."""
    if not THP_SWITCH.exists():
        return "unknown"
    match = re.search(r"\[(\w+)\]", THP_SWITCH.read_text())
    return match[1] if match else "unknown"


def without_huge_pages() -> None:
    """For a child between fork and exec: advice to use huge pages has no effect on it."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def output_of(command: Sequence[str], before: Callable[[], None] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=before)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise MachineError(said or f"{command[0]} ended with {done.returncode}")
    return done.stdout


def probe_rate(executable: Path, kernel: str, setting: Setting) -> float:
    command = [str(executable), "kernel", "--kernel", kernel, "--cores", str(setting.core), "--repeat", "1"]
    command += ["--node", str(setting.node), "--seconds", str(setting.seconds)]
    command += ["--working-set", f"{setting.working_set_kb}kB"]
    record = json.loads(output_of(command, without_huge_pages if setting.small_pages else None))
    return float(record["rate"])


def likwid_rate(kernel: str, setting: Setting) -> float:
    size = setting.working_set_kb
    if kernel.endswith("_cache"):
        size = second_level_kb(setting.core) // 2
    elif kernel == "fma":
        size = FIRST_LEVEL_KB
    command = ["taskset", "-c", str(setting.core), "likwid-bench", "-t", peer_of(kernel)]
    command += ["-w", f"N:{size}kB:1", "-s", str(max(1, round(setting.seconds)))]
    text = output_of(command)
    line = "MFlops/s" if kernel == "fma" else "MByte/s"
    match = re.search(rf"^{line}:\s*(\S+)$", text, re.MULTILINE)
    if match is None:
        raise MachineError(f"likwid-bench printed no rate for {peer_of(kernel)}: {text.strip()[-200:]}")
    return float(match[1])


def measure(executable: Path, kernels: Sequence[str], repeat: int, setting: Setting) -> list[Row]:
    """Every repetition measures every kernel on both sides; the side that goes first alternates."""
    ours: dict[str, dict[int, list[float]]] = {kernel: {} for kernel in kernels}
    theirs: dict[str, dict[int, list[float]]] = {kernel: {} for kernel in kernels}
    reasons: dict[str, str] = {}
    for repetition in range(repeat):
        for kernel in kernels:
            if kernel in reasons:
                continue
            print(f"{kernel} {repetition + 1}/{repeat}", file=sys.stderr)
            try:
                for side in ("probe", "likwid") if repetition % 2 == 0 else ("likwid", "probe"):
                    if side == "probe":
                        ours[kernel][repetition] = [probe_rate(executable, kernel, setting)]
                    else:
                        theirs[kernel][repetition] = [likwid_rate(kernel, setting)]
            except MachineError as error:
                reasons[kernel] = str(error)
    return [row_of(kernel, ours[kernel], theirs[kernel], reasons.get(kernel, "")) for kernel in kernels]


def row_of(kernel: str, ours: dict[int, list[float]], theirs: dict[int, list[float]], reason: str) -> Row:
    if reason:
        return Row(kernel=kernel, peer=peer_of(kernel), reason=reason)
    unit = "Mflop/s" if kernel == "fma" else "MB/s"
    return Row(
        kernel=kernel,
        peer=peer_of(kernel),
        probe=summarise([rate for rates in ours.values() for rate in rates], unit),
        likwid=summarise([rate for rates in theirs.values() for rate in rates], unit),
        ratio=kept(theirs, ours),
    )


def machine_line(setting: Setting, load: Sequence[float]) -> str:
    pages = huge_pages_mode()
    same = "both without huge pages" if setting.small_pages or pages == "never" else "both with huge pages"
    if pages == "madvise" and not setting.small_pages:
        same = "the probe with huge pages, likwid-bench without"
    model = cpu_line("model name") or platform.machine()
    return (
        f"{model}, {os.cpu_count()} cores; load {load[0]:.2f} before, {os.getloadavg()[0]:.2f} after; "
        f"core {setting.core}, {setting.working_set_kb * 1e-6:.2f} GB; huge pages: {pages} ({same})"
    )


def show(rows: Sequence[Row], machine: str) -> None:
    print(machine)
    print(f"{'kernel':<12} {'likwid-bench':<22} {'probe':>10} {'likwid':>10}  ratio [95 %]")
    for row in rows:
        if row.probe is None or row.likwid is None or row.ratio is None:
            print(f"{row.kernel:<12} {row.peer:<22} n/a: {row.reason or 'a rate of zero'}")
            continue
        rates = f"{row.probe.median:>10.0f} {row.likwid.median:>10.0f}"
        ratio = f"{row.ratio.value:.3f} [{row.ratio.low:.3f}, {row.ratio.high:.3f}]"
        print(f"{row.kernel:<12} {row.peer:<22} {rates}  {ratio}")


def arguments() -> argparse.Namespace:
    parser = Command(
        "Kernels of the probe against likwid-bench.",
        smoke="--repeat 1 --working-set 16MiB --seconds 0.05 --kernels triad",
    )
    parser.add_argument("--repeat", type=int, default=9, help="interleaved repetitions of each kernel")
    parser.add_argument("--core", type=int, default=1, help="the core both run on")
    parser.add_argument("--node", type=int, default=0, help="NUMA node of the probe's arrays")
    parser.add_argument("--working-set", type=bytes_of, default="1GiB", help="all arrays together")
    parser.add_argument("--seconds", type=float, default=1.0, help="measured in each repetition of each side")
    parser.add_argument("--kernels", default=",".join(PEERS), help="some of: " + ", ".join(PEERS))
    parser.add_argument("--own-pages", action="store_true", help="the probe uses huge pages, as usual")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    chosen = parser.parse_args()
    unknown = set(chosen.kernels.split(",")) - set(PEERS)
    if unknown:
        parser.error(
            f"--kernels {','.join(sorted(unknown))}: no such kernel here; choose from {', '.join(PEERS)}"
        )
    if chosen.repeat < 1 or chosen.seconds <= 0 or chosen.core not in os.sched_getaffinity(0):
        parser.error("--repeat and --seconds must be positive and --core one of this process' cores")
    return chosen


def main() -> int:
    chosen = arguments()
    for tool, package in (("likwid-bench", "likwid"), ("taskset", "util-linux")):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed; on Debian: apt-get install {package}", file=sys.stderr)
            return 1
    setting = Setting(
        core=chosen.core,
        node=chosen.node,
        working_set_kb=chosen.working_set // 1000,
        seconds=chosen.seconds,
        # Where huge pages are for those who ask, likwid-bench has none: neither has the probe then.
        small_pages=not chosen.own_pages and huge_pages_mode() == "madvise",
    )
    load = os.getloadavg()
    try:
        rows = measure(probe(), chosen.kernels.split(","), chosen.repeat, setting)
    except MachineError as error:
        print(error, file=sys.stderr)
        return 1
    machine = machine_line(setting, load)
    if chosen.json:
        print(json.dumps({"machine": machine, "kernels": msgspec.to_builtins(rows)}))
    else:
        show(rows, machine)
    return status(chosen, all(row.ratio is None for row in rows))


if __name__ == "__main__":
    sys.exit(main())
