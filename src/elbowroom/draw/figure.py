"""A figure as data: what every experiment draws with, in the page (SVG) and in files (PNG, SVG)."""

from __future__ import annotations

from typing import Literal

import msgspec

Scale = Literal["linear", "log2", "log10"]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One curve with its band. The paper's convention: plain alone, dashed together, band from d1 to d9."""

    name: str
    side: Literal["computation", "communication"]
    style: Literal["alone", "together", "line"]
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    axis: Literal["left", "right"] = "left"
    points: tuple[str, ...] = ()


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis: label with its unit and scale; `bytes` prints 4 B, 64 KiB, 1 MB instead of numbers."""

    label: str
    scale: Scale = "linear"
    bytes: bool = False


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A vertical line at `x` with a sentence, for what an experiment found (an onset, a boundary)."""

    x: float
    text: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One panel: left axis (communication by convention), right axis (computation), series and marks."""

    name: str
    title: str
    x: Axis
    left: Axis
    right: Axis | None = None
    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    caption: str = ""
