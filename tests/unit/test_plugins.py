"""Every kind that installed packages add to: used where it can be, named in a sentence where not."""

from __future__ import annotations

from typing import Any

import pytest

from elbowroom.errors import UsageError
from elbowroom.measure.doctor_facts import REGISTRIES
from elbowroom.plugins import Registry
from plugin_site import Install

KINDS = [pytest.param(registry, id=registry.kind) for registry in REGISTRIES]


@pytest.mark.parametrize("registry", KINDS)
@pytest.mark.parametrize("code", ["1 / 0", "import sys; sys.exit(3)", "syntax error"])
def test_a_package_that_fails_to_import_is_named_and_the_rest_works(
    install_plugin: Install, registry: Registry[Any], code: str
) -> None:
    before = len(registry.all())
    install_plugin("plugin_one", {"__init__.py": code}, {registry.kind: {"halo": "plugin_one:HALO"}})
    [problem] = registry.problems()
    assert "cannot be imported" in problem
    assert "uninstall plugin_one" in problem
    assert len(registry.all()) == before


@pytest.mark.parametrize("registry", KINDS)
def test_a_name_that_two_packages_declare_is_used_from_neither(
    install_plugin: Install, registry: Registry[Any]
) -> None:
    for package in ("plugin_one", "plugin_two"):
        install_plugin(package, {"__init__.py": ""}, {registry.kind: {"halo": package}})
    [problem] = registry.problems()
    assert problem.startswith(f"plugin_one and plugin_two declare 'halo' in elbowroom.{registry.kind}; none")
    assert "halo" not in registry.names()
    with pytest.raises(UsageError, match="plugin_one and plugin_two declare 'halo'"):
        registry.get("halo")


@pytest.mark.parametrize("registry", KINDS)
def test_a_name_of_elbowroom_itself_cannot_be_taken(install_plugin: Install, registry: Registry[Any]) -> None:
    name = registry.names()[-1]
    before = registry.get(name)
    install_plugin("plugin_one", {"__init__.py": ""}, {registry.kind: {name: "plugin_one"}})
    assert "which elbowroom itself has" in registry.problems()[0]
    assert registry.get(name) == before


@pytest.mark.parametrize("registry", KINDS)
def test_what_an_entry_point_names_must_be_of_its_kind(
    install_plugin: Install, registry: Registry[Any]
) -> None:
    install_plugin("plugin_one", {"__init__.py": "HALO = 1"}, {registry.kind: {"halo": "plugin_one:HALO"}})
    [problem] = registry.problems()
    assert "plugin_one" in problem


@pytest.mark.parametrize("registry", KINDS)
def test_a_name_that_nothing_declares_is_refused_with_the_known_ones(registry: Registry[Any]) -> None:
    with pytest.raises(UsageError, match="no such") as error:
        registry.get("halo")
    assert all(name in error.value.hint for name in registry.names())
