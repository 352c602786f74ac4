"""Results of a run in the formats of other programs; a module for each, with its text of `Results`."""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal[
    "parquet", "csv", "json", "png", "svg", "osu", "bmf", "openmetrics", "junit", "hwloc", "curves"
]
"""What `export` writes; here, so that the command line knows the names without loading what writes them."""

FORMATS: tuple[Format, ...] = get_args(Format)

ENDINGS: dict[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "json": (".json",),
    "osu": (".txt", ".out", ".osu"),
    "bmf": (".json", ".bmf"),
    "openmetrics": (".prom", ".om", ".txt"),
    "junit": (".xml",),
    "hwloc": (".xml",),
    "curves": (".csv",),
}
"""Of the names of their files; figures are written into a folder."""
