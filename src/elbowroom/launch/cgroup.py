"""The CPUs that the cgroup of this process gives it (docs: kernel.org, cgroup-v2, cpu.max)."""

from __future__ import annotations

import contextlib
from pathlib import Path


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs by the smallest limit of the process's cgroup and those above it; None without a limit.

    `root`: where /proc and /sys are, for tests.
    """
    quotas = []
    mounts = _mounts(root / "proc", root / "sys/fs/cgroup")
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                quotas += _limits(mounts, path)
            elif "cpu" in controllers.split(","):
                quotas += _limits(mounts / "cpu", path)
                quotas += _limits(mounts / controllers, path)
    return min(quotas, default=None)


def _mounts(proc: Path, own: Path) -> Path:
    """Where control groups are mounted. A process whose /sys has none (`ip netns exec`, some containers)
    reads those of an ancestor, which names them in the same way within one cgroup namespace
    (core/base/cgroup.cpp).
    """
    process, mounts = proc / "self", own
    with contextlib.suppress(OSError, IndexError):
        space = (process / "ns/cgroup").readlink()
        while not (mounts.is_dir() and any(mounts.iterdir())):
            status = (process / "status").read_text(encoding="utf-8")
            process = proc / status.partition("PPid:")[2].split()[0]
            mounts = own
            if (process / "ns/cgroup").readlink() == space:
                mounts = process / "root/sys/fs/cgroup"
        return mounts
    return own


def _limits(mount: Path, path: str) -> list[float]:
    """The limits of a cgroup and of those above it."""
    quotas = []
    folder = mount / path.lstrip("/")
    while True:
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
            if quota != "max":
                quotas.append(int(quota) / int(period))
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            number = int((folder / "cpu.cfs_quota_us").read_text(encoding="utf-8"))
            if number > 0:
                quotas.append(number / int((folder / "cpu.cfs_period_us").read_text(encoding="utf-8")))
        if folder == mount or mount not in folder.parents:
            return quotas
        folder = folder.parent
