"""Limits of the uncore's frequency in a register of Intel's processors, where the kernel has no
intel_uncore_frequency: MSR_UNCORE_RATIO_LIMIT (Intel, Software Developer's Manual, volume 4), which LIKWID
writes, too. Others have other ways, which `absence` names.
"""

from __future__ import annotations

import os
from pathlib import Path

_RATIO_LIMIT = 0x620
_BYTES = 8
_RATIO_KHZ = 100_000
_RATIO = 0x7F
_MINIMUM_SHIFT = 8
"""The highest ratio is in bits 0 to 6, the lowest one in bits 8 to 14."""

_ABSENT = "no intel_uncore_frequency (kernel module of that name, Intel only)"
_OTHERS = {
    "AuthenticAMD": "AMD's fabric clock: amd_hsmp's /dev/hsmp or the firmware sets it, elbowroom does not",
    "": "Arm's interconnect clock: the firmware sets it, no interface of the kernel does",
}
"""By vendor_id of /proc/cpuinfo, which Arm's kernels do not have."""

NAME = "msr"
"""A file of this name holds registers of a CPU."""


def limits(path: Path) -> str:
    """`LOWEST HIGHEST`, kHz. OSError where the processor has no such register."""
    value = _read(path)
    return f"{(value >> _MINIMUM_SHIFT & _RATIO) * _RATIO_KHZ} {(value & _RATIO) * _RATIO_KHZ}"


def set_limits(path: Path, text: str) -> None:
    """Sets them as `limits` writes them; other bits of the register stay. Between multiples of 100 MHz the
    lower one is set.
    """
    low, high = (int(khz) // _RATIO_KHZ & _RATIO for khz in text.split())
    others = _read(path) & ~(_RATIO | _RATIO << _MINIMUM_SHIFT)
    handle = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(handle, (others | high | low << _MINIMUM_SHIFT).to_bytes(_BYTES, "little"), _RATIO_LIMIT)
    finally:
        os.close(handle)


def _read(path: Path) -> int:
    handle = os.open(path, os.O_RDONLY)
    try:
        return int.from_bytes(os.pread(handle, _BYTES, _RATIO_LIMIT), "little")
    finally:
        os.close(handle)


def registers(root: Path) -> list[str]:
    """The file of one CPU of each package, below `root` (/sys); none on processors of others than Intel."""
    if _vendor(root) != "GenuineIntel":
        return []
    packages: dict[int, int] = {}
    for path in (root / "devices/system/cpu").glob("cpu[0-9]*/topology/physical_package_id"):
        cpu, package = int(path.parts[-3].removeprefix("cpu")), int(path.read_text(encoding="ascii"))
        packages[package] = min(cpu, packages.get(package, cpu))
    return [f"../dev/cpu/{cpu}/{NAME}" for _, cpu in sorted(packages.items())]


def absence(root: Path) -> str:
    """Why the uncore has no frequency that can be set here."""
    if _vendor(root) == "GenuineIntel":
        return f"{_ABSENT}, and no registers (as root: modprobe msr)"
    return f"{_ABSENT}; {_OTHERS.get(_vendor(root), 'this vendor is unknown')}"


def _vendor(root: Path) -> str:
    try:
        lines = (root.parent / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")]
    return names[0] if names else ""
