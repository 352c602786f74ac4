"""Every option that is a quantity reads the units that people type, whichever command has it."""

from __future__ import annotations

import importlib
import pkgutil

import click
import pytest

from elbowroom import verbs
from elbowroom.errors import UsageError
from elbowroom.verbs.declaration import QUANTITIES, VERBS, Declared

for _module in pkgutil.iter_modules(verbs.__path__):
    importlib.import_module(f"elbowroom.verbs.{_module.name}")

SPELLINGS = {
    "SIZE": ("64MB", "64 MB", "64000kB", "64mb"),
    "S,S": ("64k,1MiB", "65536, 1 MiB", "64KiB,1024 KiB"),
    "TIME": ("5min", "300s", "300 s", "300000 ms", "4m60s"),
    "RATE": ("1.5GB/s", "1500 MB/s", "12Gbit/s", "12 Gbps"),
    "MB/s": ("1500", "1.5GB/s", "1500 MB/s"),
    "SHARE": ("0.3", "30%", "30 %"),
    "PERCENT": ("30", "30%", "30 %"),
}
"""The same quantity in several spellings, by metavar."""
FORMATS = {"RATE@NODE", "JOB=RATE", "JOB=SIZE@RATE"}
"""Metavars of words that hold quantities, read by the models."""
UNITS = {
    "time",
    "size",
    "sizes",
    "rate",
    "bandwidth",
    "seconds",
    "percent",
    "share",
    "noise",
    "timeout",
    "budget",
}


def options() -> list[tuple[str, str, Declared]]:
    """All options: command, field and declaration."""
    return [
        (verb.name, member.name, member.declared)
        for verb in VERBS.values()
        for member in verb.members
        if member.declared is not None and member.declared.kind is click.Option
    ]


QUANTITIES_OF_COMMANDS = [
    pytest.param(name, declared, id=f"{command} {name}")
    for command, name, declared in options()
    if declared.settings.get("metavar") in QUANTITIES
]


@pytest.mark.parametrize(("name", "declared"), QUANTITIES_OF_COMMANDS)
def test_a_quantity_is_read_with_the_units_that_people_type(name: str, declared: Declared) -> None:
    spellings = SPELLINGS[declared.settings["metavar"]]
    assert len({declared.parsed(text, name) for text in spellings}) == 1


@pytest.mark.parametrize(("name", "declared"), QUANTITIES_OF_COMMANDS)
def test_what_is_no_quantity_is_refused_with_field_value_and_hint(name: str, declared: Declared) -> None:
    with pytest.raises(UsageError) as error:
        declared.parsed("2 parsecs", name)
    assert error.value.field == declared.typed(name)
    assert error.value.value in ("2 parsecs", "parsecs")
    assert error.value.hint


def test_every_kind_of_quantity_has_spellings() -> None:
    assert set(SPELLINGS) == set(QUANTITIES)


def test_an_option_whose_name_says_a_quantity_has_a_metavar_of_one() -> None:
    known = set(QUANTITIES) | FORMATS
    others = {
        f"{command} --{name}": declared.settings.get("metavar")
        for command, name, declared in options()
        if UNITS & set(declared.typed(name).split("_")) and declared.settings.get("metavar") not in known
    }
    # A unit of the metric itself, and a flag: the metric is a rate.
    assert set(others) <= {"trace overhead --rate", "trace flushes --rate"}
