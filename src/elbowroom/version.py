"""The version of this release, apart from the package: what needs it does not import the public names."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
_PLACES = (_PACKAGE / "_native" / "VERSION", _PACKAGE.parents[1] / "VERSION")
"""In a wheel, in a checkout."""

__version__ = next(place for place in _PLACES if place.is_file()).read_text(encoding="ascii").strip()
