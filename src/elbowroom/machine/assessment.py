"""A line of `doctor` before it has its name: ok, a warning with its hint, or absent with the reason."""

from __future__ import annotations

from typing import Literal

import msgspec


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a fact could not be had, and what would fix it."""

    reason: str
    hint: str = ""


class Assessment(msgspec.Struct, frozen=True):
    """What a look at one fact says."""

    status: Literal["ok", "warn", "n/a"]
    text: str
    hint: str = ""


def ok(text: str) -> Assessment:
    """A fact that is as it should be."""
    return Assessment("ok", text)


def warn(text: str, hint: str) -> Assessment:
    """A fact that spoils measurements, and what would fix it."""
    return Assessment("warn", text, hint)


def absent(text: str, hint: str = "") -> Assessment:
    """`n/a`, with the reason as text."""
    return Assessment("n/a", text, hint)
