"""The words of cases on an accelerator."""

from __future__ import annotations

from typing import Literal

Victim = Literal["gemm", "triad", "chain", "cores", "copy", ""]
Mover = Literal["", "copy", "messages", "sm_copy", "sm_idle", "sm_target"]
Direction = Literal["", "h2d", "d2h", "both", "d2d", "hbm", "host"]
First = Literal["victim", "mover"]

ON_DEVICE = ("gemm", "triad", "chain")
"""Victims that compute on the accelerator."""

SMS_OF = ("sm_copy", "sm_idle", "sm_target")
"""Movers that hold SMs, or stand for those that a plan leaves out."""

LINKS = ("h2d", "d2h", "both")
"""Directions of copies between host and device."""

DIRECTIONS_OF: dict[str, tuple[Direction, ...]] = {
    "": ("",),
    "copy": ("h2d", "d2h", "both", "d2d"),
    "messages": ("",),
    "sm_copy": ("hbm", "host"),
    "sm_idle": ("",),
    "sm_target": ("",),
}
