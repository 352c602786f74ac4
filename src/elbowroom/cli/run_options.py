"""Options of commands that measure: where to run, on which virtual machine, and changes to the plan."""

from __future__ import annotations

import re
from typing import Any

from elbowroom import api
from elbowroom.cli.options import RegistryChoice
from elbowroom.errors import UsageError
from elbowroom.quantities import parse_cores, parse_size

MODEL = RegistryChoice(lambda: api.choices.model_names())
_HOST = re.compile(r"[\w\[][\w.:\[\]-]*", re.ASCII)


def launch_options(options: dict[str, Any]) -> dict[str, Any]:
    """What the options say of the launcher, its MPI and the hosts."""
    return {
        "launcher": options["launcher"],
        "mpi": options["mpi"],
        "hosts": parse_hosts(options["hosts"]),
        "hostfile": options["hostfile"],
    }


def parse_hosts(text: str | None) -> tuple[str, ...]:
    """The hosts of a list; UsageError where a part is empty or no host's name."""
    hosts = () if text is None else tuple(split_list(text))
    if not all(_HOST.fullmatch(host) for host in hosts):
        raise UsageError("is not a list of hosts", field="hosts", value=text, hint="write names: a,b")
    return hosts


def virtual_options(options: dict[str, Any]) -> dict[str, Any]:
    """What the options say of a virtual machine."""
    return {"machine": options["machine"], "noise": options["noise"]}


def plan_overrides(options: dict[str, Any]) -> api.Overrides:
    """The keys of a plan that the options set; UsageError for what they cannot mean."""
    settings = {}
    for setting in options["settings"]:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                "is not KEY=VALUE", field="set", value=setting, hint="for instance --set window=0.2"
            )
        settings[key.strip()] = value.strip()
    if options.get("nodes") is not None:
        if not all(word.isdecimal() and word.isascii() for word in split_list(options["nodes"])):
            raise UsageError(
                "is not a list of numbers", field="nodes", value=options["nodes"], hint="for instance 4,8,16"
            )
        settings["nodes"] = options["nodes"]
    kernels, cores, sizes = options["kernels"], options["comp_cores"], options["sizes"]
    return api.Overrides(
        kernels=None if kernels is None else tuple(split_list(kernels)),
        comp_cores=None if cores is None else parse_cores(cores),
        comm_core=options["comm_core"],
        comp_node=options["comp_node"],
        comm_node=options["comm_node"],
        sizes=None if sizes is None else tuple(parse_size(size) for size in split_list(sizes)),
        repeat=options["repeat"],
        starts=options.get("starts"),
        budget=options["budget"],
        settings=settings,
        quick=bool(options.get("quick")),
    )


def split_list(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [word.strip() for word in text.split(",")]
