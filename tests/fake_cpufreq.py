"""A made-up /sys with cpufreq and intel_uncore_frequency: two policies and two dies of one package each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

POLICY = {
    "cpuinfo_min_freq": 1_000_000,
    "cpuinfo_max_freq": 3_700_000,
    "base_frequency": 2_300_000,
    "scaling_min_freq": 1_000_000,
    "scaling_max_freq": 3_700_000,
    "scaling_available_governors": "performance userspace schedutil",
    "scaling_governor": "performance",
    "scaling_setspeed": "<unsupported>",
}
DIE = {
    "initial_min_freq_khz": 1_200_000,
    "initial_max_freq_khz": 2_400_000,
    "min_freq_khz": 1_300_000,
    "max_freq_khz": 2_400_000,
}
SETTINGS = ("scaling_min_freq", "scaling_max_freq", "scaling_governor", "min_freq_khz", "max_freq_khz")


def cpufreq_tree(root: Path) -> Path:
    """Makes the tree below `root`, and returns it."""
    for number in (0, 1):
        _folder(root / f"devices/system/cpu/cpufreq/policy{number}", POLICY)
        _folder(root / f"devices/system/cpu/intel_uncore_frequency/package_0{number}_die_00", DIE)
    return root


def setting_values(root: Path, *names: str) -> dict[str, str]:
    """The texts of the files of these names, or of all settings, by their path below the root."""
    return {
        str(path.relative_to(root)): path.read_text().strip()
        for path in sorted(root.rglob("*"))
        if path.name in (names or SETTINGS)
    }


def _folder(path: Path, files: dict[str, Any]) -> None:
    path.mkdir(parents=True)
    for name, value in files.items():
        (path / name).write_text(f"{value}\n")
