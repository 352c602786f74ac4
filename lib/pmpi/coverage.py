"""Every function of an MPI library, and what becomes of its calls.

    python coverage.py --wrapper mpicxx

prints JSON: {"MPI_Send": "detail", "MPI_Comm_rank": "call", "MPI_Wtime": "passed: reads a clock ...", ...}

`detail`: with peers, bytes, messages; `call`: begin and end; `passed: why`: not told. Both tools over the
shims, lib/pmpi/trace and lib/pmpi/profile, hear the same. Ends with 1 where the
library has a function that is none of these. Names of Fortran's bindings are told by what they call. Standard
library only.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from generate import header_text, reason_passed, shimmed, short
from prototypes import functions
from special import PASSED, SPECIAL

CALLS = re.compile(
    r"MPI_(Abort|Finalize|Init|Init_thread|Pcontrol|Query_thread|Is_thread_main|Get_processor_name|Request_get_status|Cancel"
    r"|Iprobe|Probe|Pready(_list|_range)?|Parrived|Buffer_(attach|detach|flush)|Ibuffer_flush|(Comm|Session)_\w+_buffer"
    r"|(Comm|Group|Type|Info|File|Win|Errhandler|Op|Attr|Keyval|Session|Cart|Cartdim|Graph|Graphdims|Dims|Dist_graph"
    r"|Topo|Pack|Unpack|Intercomm|Add_error|Alloc|Free|Reduce_local|Grequest|Register|Open|Close|Publish|Unpublish"
    r"|Lookup|Remove_error|Neighbor)(_\w+)?)(_c)?"
)
"""Functions that are recorded as calls, and need no more."""

NO_CALLS = (
    (
        r"\w+_(DUP_FN|NULL_COPY_FN|NULL_DELETE_FN|CONVERSION_FN_NULL)|MPI_(DUP_FN|CONVERSION_FN_NULL)",
        "no call",
    ),
    (
        r"MPI_(Errhandler_(create|get|set)|Type_(extent|hindexed|hvector|lb|struct|ub)|Address)",
        "of MPI 1: not in mpi.h",
    ),
    (r"MPI_(F|F08)_STATUS(ES)?_IGNORE|MPI_(UNWEIGHTED|WEIGHTS_EMPTY|T_PVAR_ALL_HANDLES)", "a variable"),
    (r"MPI_(WTIME|WTICK|AINT_ADD|AINT_DIFF)_F90", "of Fortran, reads a clock or adds"),
    (r"MPI_(NULL_COPY_FN|NULL_DELETE_FN)", "no call"),
    (r"MPIX_\w+", "an extension that mpi.h does not declare"),
)


FORTRAN_ONLY = (
    (r"mpi_sizeof\w*", "arithmetic"),
    (r"mpi_f_sync_reg", "no call"),
    (r"mpi_delete_error_\w+", "calls an extension of MPICH by its PMPIX name"),
    (r"mpi_fortran_\w+|mpi_\w*_(fn|null)", "a variable, or a function that programs hand on"),
)
"""What C has no function for."""

_FORTRAN = re.compile(r"(mpix?_\w+?)(_f08ts_large|_f08ts|_f08_large|_f08|_cptr_?|_)?_")


def library_symbols(wrapper: str) -> set[str]:
    """MPI_ and MPIX_ functions and variables that the libraries of a compiler wrapper export, and mpi_send_
    and others of the bindings for Fortran beside them.
    """
    found: set[str] = set()
    for library in _libraries(wrapper):
        done = subprocess.run(
            ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
        )
        capital = r"MPIX?_\w+" if library.name.startswith(("libmpi.", "libmpich.")) else "(?!)"
        found |= set(re.findall(rf" ({capital}|mpix?_\w+_)$", done.stdout, re.MULTILINE))
    return found


def _words(wrapper: str) -> list[str]:
    for option in ("--showme", "-show"):
        done = subprocess.run([wrapper, option], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.split()
    raise SystemExit(f"wrapper '{wrapper}': does not say what it calls; give the mpicxx of Open MPI or MPICH")


def _libraries(wrapper: str) -> list[Path]:
    """The shared libraries themselves: lib*.so may be a script for the linker."""
    words = _words(wrapper)
    folders = [Path(word[2:]) for word in words if word.startswith("-L")]
    names = [word[2:] for word in words if re.fullmatch(r"-l(mpi|mpich)", word)]
    names += ["mpi_mpifh", "mpi_usempif08", "mpi_usempi_ignore_tkr"] if "mpi" in names else ["mpichfort"]
    found: dict[str, Path] = {}
    for folder in [*folders, *(folder / "fortran" / "gfortran" for folder in folders)]:
        for name in names:
            for path in sorted(folder.glob(f"lib{name}.so*")):
                if path.read_bytes()[:4] == b"\x7fELF":
                    found.setdefault(name, path)
    return list(found.values())


def states(wrapper: str, more: Sequence[str] = ()) -> tuple[dict[str, str], list[str]]:
    """The state of each symbol, and those that have none."""
    includes = [word[2:] for word in _words(wrapper) if word.startswith("-I")]
    declared = {one.name: one for one in functions(header_text("cc", includes))}
    shims = {one.name for one in shimmed(list(declared.values()))} | {"MPI_Pcontrol"}
    found, unknown = {}, []
    for name in sorted(library_symbols(wrapper) | set(more)):
        if name[0] == "m":
            state = _fortran_state(name, {one.lower(): one for one in shims})
        else:
            state = _state(name, name in declared, name in shims)
        if state is None:
            unknown.append(name)
        else:
            found[name] = state
    return found, unknown


def _state(name: str, declared: bool, shimmed_: bool) -> str | None:
    if shimmed_ and (short(name) in SPECIAL or name in ("MPI_Init", "MPI_Init_thread")):
        return "detail"
    if shimmed_ and (CALLS.fullmatch(name) or name.startswith("MPIX_")):
        return "call"
    reason = reason_passed(name)
    if reason is None and not declared:
        reason = next((why for pattern, why in NO_CALLS if re.fullmatch(pattern, name)), None)
    return None if reason is None or shimmed_ else f"passed: {reason}"


def _fortran_state(name: str, shims: dict[str, str]) -> str | None:
    """Of a binding: that of the function that it calls."""
    match = _FORTRAN.fullmatch(name)
    assert match is not None
    base, end = match.group(1), match.group(2) or ""
    if base in shims:
        if end.startswith("_f08ts"):
            return "call: by the function of C that it calls"
        return _state(shims[base], True, True)
    for pattern, why in FORTRAN_ONLY:
        if re.fullmatch(pattern, base):
            return f"passed: {why}"
    return _passed_by_name(base)


def _passed_by_name(base: str) -> str | None:
    """By the patterns for C, whatever the capitals."""
    for pattern, why in (*PASSED, *NO_CALLS):
        if re.fullmatch(pattern, base, re.IGNORECASE):
            return f"passed: {why}"
    return None


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wrapper", required=True)
    parser.add_argument("--symbol", action="append", default=[], help="besides those of the library")
    arguments = parser.parse_args()
    found, unknown = states(arguments.wrapper, arguments.symbol)
    print(json.dumps(found, indent=1))
    if not found or unknown:
        print(f"nobody knows what becomes of: {', '.join(unknown) or 'this library'}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
