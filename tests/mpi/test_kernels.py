"""The kernels' machine code: which stores each loop really uses (docs/design/method.md, rule 9)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

NON_TEMPORAL_STORE = re.compile(r"\b(v?movnt\w+|stnp|stnt1\w*)\b")
CALL = re.compile(r"\b(callq?|bl|blr)\b")
NON_TEMPORAL = {"MemsetNt", "CopyNt", "TriadNt"}
PLAIN = {"Load", "Copy", "Triad", "TriadCursor"}
# objdump -C: "0000000000001160 <elbowroom::N_AVX3::Load(double const*, unsigned long)>:"
HEADER = re.compile(r"^[0-9a-f]+ <(?P<name>.+)>:$")
LOOP = re.compile(r"elbowroom::(?P<target>N_\w+)::(?P<loop>[A-Z]\w+)[(<]")

Loops = dict[tuple[str, str], list[str]]


def functions(probe: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and instructions of every function of the executable."""
    text = subprocess.run(
        ["objdump", "-dC", "--no-show-raw-insn", str(probe)], capture_output=True, text=True, check=True
    ).stdout
    name = ""
    body: list[str] = []
    for line in text.splitlines():
        if header := HEADER.match(line):
            if name:
                yield name, body
            name, body = header["name"], []
        elif "\t" in line:
            body.append(line.split("\t", 1)[1])
    if name:
        yield name, body


@pytest.fixture(scope="module")
def probe() -> Path:
    value = os.environ.get("ELBOWROOM_PROBE", "")
    if not value or not Path(value).is_file():
        pytest.skip("ELBOWROOM_PROBE does not name a built probe")
    if shutil.which("objdump") is None:
        pytest.skip("objdump (binutils) is not installed")
    return Path(value)


@pytest.fixture(scope="module")
def disassembly(probe: Path) -> dict[str, list[str]]:
    found = dict(functions(probe))
    if not any("elbowroom::" in name for name in found):
        pytest.skip(f"{probe} has no symbols: it was stripped when it was installed")
    return found


@pytest.fixture(scope="module")
def loops(disassembly: dict[str, list[str]]) -> Loops:
    """The loops of every instruction set that dispatch can choose: {(target, loop): instructions}."""
    found: Loops = {}
    for name, body in disassembly.items():
        # Jump targets inside a function have the function's name with an offset; clones carry a suffix.
        if match := LOOP.search(name):
            found.setdefault((match["target"], match["loop"]), []).extend(body)
    return found


def test_every_loop_is_found_by_its_name(loops: Loops) -> None:
    # Of loops that are the same for two instruction sets, the linker's table may name only one.
    assert {loop for _, loop in loops} >= PLAIN | NON_TEMPORAL | {"FmaChains"}


@pytest.mark.parametrize("loop", sorted(NON_TEMPORAL))
def test_non_temporal_kernels_store_past_the_cache(loops: Loops, loop: str) -> None:
    for (target, name), body in loops.items():
        if name == loop:
            assert any(NON_TEMPORAL_STORE.search(line) for line in body), target


@pytest.mark.parametrize("loop", sorted(PLAIN))
def test_plain_kernels_use_no_non_temporal_store(loops: Loops, loop: str) -> None:
    for (target, name), body in loops.items():
        if name == loop:
            assert not [line for line in body if NON_TEMPORAL_STORE.search(line)], target


@pytest.mark.parametrize("loop", sorted(PLAIN | NON_TEMPORAL))
def test_loops_call_nothing_so_that_no_library_chooses_the_stores(loops: Loops, loop: str) -> None:
    for (target, name), body in loops.items():
        if name == loop:
            assert not [line for line in body if CALL.search(line)], target


def test_the_avx512_loops_use_whole_registers(loops: Loops) -> None:
    bodies = {name: body for (target, name), body in loops.items() if target == "N_AVX3"}
    if not bodies:
        pytest.skip("no AVX-512 in this executable: not built for x86-64")
    for loop in PLAIN | NON_TEMPORAL:
        assert any("%zmm" in line for line in bodies[loop]), loop


def test_prime_counting_touches_no_memory(disassembly: dict[str, list[str]]) -> None:
    bodies = [body for name, body in disassembly.items() if "elbowroom::loops::count_primes(" in name]
    assert len(bodies) == 1
    # Memory operands: "8(%rsp)" on x86 (nop has one in form only), "[sp, #8]" on aarch64.
    computing = [line for line in bodies[0] if not re.search(r"\b(nop|lea)", line)]
    assert not [line for line in computing if re.search(r"\(%r|\[", line)]


@pytest.mark.parametrize("name", ["write_elements", "read_elements"])
def test_extraneous_accesses_are_plain_and_of_whole_vectors(
    disassembly: dict[str, list[str]], name: str
) -> None:
    bodies = [body for full, body in disassembly.items() if f"elbowroom::{name}(" in full]
    assert len(bodies) == 1
    assert not [line for line in bodies[0] if NON_TEMPORAL_STORE.search(line) or CALL.search(line)]
    assert any(re.search(r"%[xyz]mm\d|\b[qv]\d", line) for line in bodies[0])
