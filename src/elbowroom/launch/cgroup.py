"""The CPUs that the cgroup of this process gives it (docs: kernel.org, cgroup-v2, cpu.max)."""

from __future__ import annotations

import contextlib
from pathlib import Path


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs by the smallest limit of the process's cgroup and those above it; None without a limit.

    `root`: where /proc and /sys are, for tests.
    """
    quotas = []
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                quotas += _limits(root / "sys/fs/cgroup", path)
            elif "cpu" in controllers.split(","):
                quotas += _limits(root / "sys/fs/cgroup/cpu", path)
                quotas += _limits(root / f"sys/fs/cgroup/{controllers}", path)
    return min(quotas, default=None)


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
