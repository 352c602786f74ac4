"""Writes the shims of an MPI: for each function of its mpi.h one of C and one of each of Fortran's names.

    python generate.py --compiler c++ --include /usr/lib/openmpi/include --out FOLDER

`FOLDER/calls.hpp` numbers the functions, `FOLDER/shims.cpp` and `FOLDER/shims_fortran.cpp` define them;
`FOLDER/calls_of_mpi.cpp` has the functions of MPI that the shims and tools call themselves. Standard library
only.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from prototypes import Prototype, functions
from special import KINDS, PASSED, SPECIAL, Special, blocking, role

_HANDLES = {
    "MPI_Comm": "MPI_Comm_f2c",
    "MPI_Datatype": "MPI_Type_f2c",
    "MPI_Group": "MPI_Group_f2c",
    "MPI_Message": "MPI_Message_f2c",
    "MPI_Request": "MPI_Request_f2c",
    "MPI_Session": "MPI_Session_f2c",
    "MPI_Win": "MPI_Win_f2c",
}
_SPELLED = ("", "__")  # beside mpi_send_; and MPI_SEND
_C_POINTERS = ("alloc_mem", "win_allocate", "win_allocate_shared", "win_shared_query")
_STARTS = ("MPI_Init", "MPI_Init_thread")
_BY_HAND = ("MPI_Pcontrol",)  # any number of arguments: region.cpp
_CALLED = (
    "Cart_shift", "Cartdim_get", "Comm_create_from_group", "Comm_create_group", "Comm_dup", "Comm_free",
    "Comm_get_parent", "Comm_group", "Comm_rank", "Comm_remote_group", "Comm_size", "Comm_test_inter",
    "Dist_graph_neighbors_count", "Error_class", "Get_count", "Get_elements_x", "Get_library_version",
    "Graph_neighbors_count", "Group_free", "Group_from_session_pset", "Group_incl", "Group_rank",
    "Group_size", "Group_translate_ranks",
    "Initialized", "Isendrecv", "Query_thread", "Recv", "Request_get_status", "Send", "Status_f2c",
    "Test_cancelled", "Topo_test", "Type_size_x", "Wait",
)  # fmt: skip
"""By their PMPI names, beside the functions of _HANDLES where these are no macros."""


def header_text(compiler: str, includes: Sequence[str]) -> str:
    """mpi.h, preprocessed as C."""
    words = [compiler, "-E", "-P", "-x", "c", *(f"-I{folder}" for folder in includes), "-"]
    done = subprocess.run(words, input="#include <mpi.h>\n", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"mpi.h cannot be read with '{' '.join(words)}':\n{done.stderr}")
    return done.stdout


def reason_passed(name: str) -> str | None:
    """Why a function is not shimmed; None where it is."""
    return next((reason for pattern, reason in PASSED if re.fullmatch(pattern, name)), None)


def shimmed(found: Sequence[Prototype]) -> list[Prototype]:
    """Those of the functions that get a shim made from their prototype."""
    return [
        one for one in found if one.result == "int" and not one.variadic and reason_passed(one.name) is None
    ]


def short(name: str) -> str:
    """MPI_Send_c as Send: the same arguments, but for their sizes."""
    return name.removeprefix("MPI_").removesuffix("_c")


class _Language:
    """How arguments of C are written in a shim."""

    def __init__(self, prototype: Prototype) -> None:
        self.prototype = prototype

    def type_of(self, number: int) -> str:
        return self.prototype.arguments[number - 1].type

    def place(self, number: int) -> str:
        return f"a{number}"

    def value(self, number: int) -> str:
        return self.place(number)

    def out(self, number: int) -> str:
        written = f"*{self.place(number)}"
        return f"Request{{{written}}}" if self.type_of(number) == "MPI_Request*" else written

    def address(self, number: int) -> str:
        return self.place(number)

    def text(self, number: int) -> str:
        return self.place(number)


class _Fortran(_Language):
    """The same in a shim of Fortran."""

    def _read(self, number: int, kind: str) -> str:
        if kind in _HANDLES:
            return f"{_HANDLES[kind]}(handle({self.place(number)}))"
        return f"value<{kind}>({self.place(number)})"

    def value(self, number: int) -> str:
        kind = self.type_of(number)
        return self.place(number) if kind.endswith("void*") else self._read(number, kind)

    def out(self, number: int) -> str:
        kind = self.type_of(number).removesuffix("*")
        return f"request({self.place(number)})" if kind == "MPI_Request" else self._read(number, kind)

    def address(self, number: int) -> str:
        kind = self.type_of(number).replace("const ", "")
        if kind in ("int*", "MPI_Count*", "MPI_Aint*"):
            return f"static_cast<const {kind}>({self.place(number)})"
        return self.place(number)

    def text(self, number: int) -> str:
        arguments = self.prototype.arguments
        length = len(arguments) + 1 + sum(argument.is_text for argument in arguments[:number])
        return f"text({self.place(number)}, {self.place(length)})"


def _in_place(language: _Language, number: str) -> str:
    return f"in_place({language.place(int(number))})"


def _chosen(function: str) -> Callable[[_Language, list[str]], str]:
    def write(language: _Language, parts: list[str]) -> str:
        own, other = (language.value(int(part)) for part in parts[1:])
        return f"{function}({_in_place(language, parts[0])}, {own}, {other})"

    return write


def _of_processes(function: str) -> Callable[[_Language, list[str]], str]:
    """Of argument 1, for all `peers`, `members` or `neighbours` (special.hpp) of a communicator."""

    def write(language: _Language, parts: list[str]) -> str:
        *given, processes, communicator = parts
        return f"{function}({_given(language, given)}, {processes}({language.value(int(communicator))}))"

    return write


def _of_communicator(function: str) -> Callable[[_Language, list[str]], str]:
    def write(language: _Language, parts: list[str]) -> str:
        return f"{function}({_given(language, parts[:-1])}, {language.value(int(parts[-1]))})"

    return write


def _given(language: _Language, parts: list[str]) -> str:
    """Counts, and types where there are two arguments."""
    counts, *types = (int(part) for part in parts)
    address = language.type_of(counts).endswith("*")
    first = language.address(counts) if address else language.value(counts)
    return ", ".join([first, *(f"Datatypes{{{language.place(number)}}}" for number in types)])


_WORDS = {
    "choose": _chosen("chosen"),
    "choose_type": _chosen("chosen_type"),
    "sum": _of_processes("sum"),
    "mean": _of_processes("mean"),
    "times": _of_processes("times"),
    "typed": _of_processes("typed"),
    "at_own_rank": _of_communicator("at_own_rank"),
    "next_to": _of_communicator("next_to"),
    "next_to_typed": _of_communicator("next_to_typed"),
}


def _expression(language: _Language, token: str) -> str:
    """A token of special.py as C++."""
    if token.startswith(("root?", "place?")):
        word, number, yes, no = token.split("?", 3)
        place = int(number)
        asked = f"{language.value(place)} == MPI_ROOT" if word == "root" else _in_place(language, number)
        return f"({asked} ? {_expression(language, yes)} : {_expression(language, no)})"
    front, *parts = token.split(":")
    if front in _WORDS:
        return _WORDS[front](language, parts)
    if token.startswith("'"):
        return token.strip("'")
    if token[0].isdigit():
        return language.value(int(token))
    number = int(token[1:].partition(":")[0])
    return {
        "@": lambda: f"Requests{{{language.place(number)}}}",
        ">": lambda: language.out(number),
        "%": lambda: f"index_out({language.place(number)})",
        "=": lambda: language.address(number),
        '"': lambda: language.text(number),
        "$": lambda: "statuses",
    }[token[0]]()


def _body(language: _Language, special: Special, call: str, count: int, result: Sequence[str]) -> list[str]:
    """What a shim does in detail. `call` has {0} for its arguments; `result`: lines that read and give it."""
    before = [_expression(language, token) for token in special.before.split()]
    lines = [f"{special.make} special({', '.join([f'call::{short_call(language.prototype)}', *before])});"]
    given = [f"a{number}" for number in range(1, count + 1)]
    for token in special.after.split():
        if token.startswith("$"):
            number, _, many = token[1:].partition(":")
            size = language.value(int(many)) if many else "1"
            lines.append(f"Statuses statuses(a{number}, {size}, special.wants());")
            given[int(number) - 1] = "statuses.given()"
    lines.append(call.format(", ".join(given)))
    after = [_expression(language, token) for token in special.after.split()]
    lines.append(f"special.{special.done}({', '.join([result[0], *after])});")
    return [*lines, *result[1:]]


def short_call(prototype: Prototype) -> str:
    """A function's number in calls.hpp."""
    return prototype.name.removeprefix("MPI_")


def _special(prototype: Prototype) -> Special | None:
    if not prototype.name.startswith("MPI_"):
        return None
    return SPECIAL.get(short(prototype.name))


def c_shim(prototype: Prototype) -> str:
    """The shim of a function for C."""
    name, declared = prototype.name, ", ".join(prototype.declared) or "void"
    given = ", ".join(f"a{number}" for number in range(1, len(prototype.arguments) + 1))
    lines = [
        f'static constinit Next<int({declared})> next_{name}{{"{name}"}};',
        f'extern "C" int {name}({declared}) {{',
    ]
    special = _special(prototype)
    if name in _STARTS:
        lines.append("  inside.caller = __builtin_return_address(0);")
        lines += _starting(
            prototype, f"const int result = next_{name}()({given});", "result", "return result;"
        )
    else:
        if special is not None and special.always:
            lines.append("  inside.caller = __builtin_return_address(0);")
        else:
            lines += ["  if (passing()) {", f"    return next_{name}()({given});", "  }"]
        if special is None:
            lines += [f"  Call of(call::{short_call(prototype)});", f"  return next_{name}()({given});"]
        else:
            call = f"const int result = next_{name}()({{0}});"
            body = _body(
                _Language(prototype), special, call, len(prototype.arguments), ["result", "return result;"]
            )
            lines += [f"  {line}" for line in body]
    return "\n".join([*lines, "}"])


def _starting(prototype: Prototype, call: str, result: str, last: str = "") -> list[str]:
    lines = [
        f"  Initialising special(call::{short_call(prototype)});",
        f"  {call}",
        f"  special.done({result});",
    ]
    return [*lines, *([f"  {last}"] if last else [])]


def fortran_words(prototype: Prototype) -> int:
    """How many arguments Fortran hands on: an error code behind C's, and the lengths of texts."""
    given = prototype.arguments[2:] if prototype.name in _STARTS else prototype.arguments
    return len(given) + 1 + sum(argument.is_text for argument in given)


def fortran_ends(prototype: Prototype) -> list[str]:
    """What follows mpi_send in the names of Fortran's bindings: mpif.h's and module mpi's, mpi_f08's, of
    functions that give a C pointer.
    """
    base = prototype.name.lower().removeprefix("mpi_")
    return ["_", "_f08_", *(["_cptr_"] if base in _C_POINTERS else [])]


def _fortran_lists(words: int) -> tuple[str, str, str]:
    """So many arguments as a call gives them, as a shim declares them, and their types."""
    names = [f"a{number}" for number in range(1, words + 1)]
    return ", ".join(names), ", ".join(f"Word {name}" for name in names), ", ".join(["Word"] * words)


def _fortran_any(prototype: Prototype, name: str, ends: Sequence[str]) -> list[str]:
    """What the shims of a function do, and those of them that are called mpi_send and an end."""
    base, words = prototype.name.lower().removesuffix("_c"), fortran_words(prototype)
    given, declared, types = _fortran_lists(words)
    last = len(prototype.arguments) + 1 if prototype.name not in _STARTS else words
    head = f"static void {name}(Next<void({types})>& next, const void* caller, {declared}) {{"
    lines = [f"[[gnu::noinline]] {head}"]
    passed = [
        "  if (passing(caller, reinterpret_cast<const void*>(next()))) {",
        f"    return next()({given});",
        "  }",
    ]
    special = _special(prototype)
    if prototype.name in _STARTS:
        lines.append("  inside.caller = caller;")
        lines += _starting(prototype, f"next()({given});", f"result(a{last})")
    elif special is None:
        lines += passed
        lines += [f"  Call of(call::{short_call(prototype)});", f"  next()({given});"]
    else:
        lines += ["  inside.caller = caller;"] if special.always else passed
        body = _body(_Fortran(prototype), special, "next()({0});", words, [f"result(a{last})"])
        lines += [f"  {line}" for line in body]
    lines.append("}")
    for end in ends:
        lines.append(f'static constinit Next<void({types})> next_{base}{end}{{"{base}{end}"}};')
        call = f"{name}(next_{base}{end}, __builtin_return_address(0), {given});"
        lines.append(f'extern "C" void {base}{end}({declared}) {{ {call} }}')
    if "_" in ends:
        for alias in [*(base + end for end in _SPELLED), base.upper()]:
            lines.append(f'extern "C" void {alias}({declared}) __attribute__((alias("{base}_")));')
    return lines


def _handed_on(prototype: Prototype, end: str) -> list[str]:
    """The shim of a binding that hands its call to the function of C, whose shim tells it: only the place of
    the call is known here alone. Descriptors of buffers (TS 29113) are handed on unread.
    """
    base, words = prototype.name.lower().removesuffix("_c"), fortran_words(prototype)
    given, declared, types = _fortran_lists(words)
    return [
        f'static constinit Next<void({types})> next_{base}{end}{{"{base}{end}"}};',
        f'extern "C" void {base}{end}({declared}) {{',
        f"  auto* const code = next_{base}{end}();",
        "  InBinding of(__builtin_return_address(0), reinterpret_cast<const void*>(code));",
        f"  code({given});",
        "}",
    ]


def _has_buffer(prototype: Prototype) -> bool:
    return any(argument.type.endswith("void*") for argument in prototype.arguments)


def fortran_shim(prototype: Prototype, large: Prototype | None) -> str:
    """The shims of a function for Fortran. `large`: its form with large counts (MPI_Send_c), which mpi_f08
    has under the same name.
    """
    base = prototype.name.lower()
    lines = _fortran_any(prototype, f"{base}_any", fortran_ends(prototype))
    if large is not None:
        lines += _fortran_any(large, f"{base}_any_large", ["_f08_large_"])
    for one, end in ((prototype, "_f08ts_"), (large, "_f08ts_large_")):
        if one is not None and _has_buffer(one):
            lines += _handed_on(one, end)
    return "\n".join(lines)


def calls_text(found: Sequence[Prototype]) -> str:
    """calls.hpp: the number, name and kind of each function that is shimmed."""
    names = [*(short_call(one) for one in found), *(name.removeprefix("MPI_") for name in _BY_HAND)]
    kinds = [KINDS.get(name.removesuffix("_c"), "nothing") for name in names]
    roles = [role(name.removesuffix("_c")) for name in names]
    return "\n".join(
        [
            "// Written by lib/pmpi/generate.py: the functions that have shims.",
            "#pragma once",
            "",
            "// Whether this MPI has sessions.",
            f"#define ELBOW_SESSIONS {int('Session_init' in names)}",
            "",
            "namespace elbowroom::pmpi {",
            "",
            "// What the fields of About mean: nothing, peer and communicator and bytes, how many requests.",
            "enum class Kind { nothing, message, requests };",
            "// What a call does, or what the operation does that it posts or makes.",
            "enum class Role { other, send, receive, exchange, collective, barrier, access, completion };",
            "struct CallInfo {",
            "  const char* name;",
            "  Kind kind;",
            "  Role role;",
            "  bool blocking;  // it posts or makes no operation",
            "};",
            "",
            f"constexpr int kCalls = {len(names)};",
            "namespace call {",
            f"enum {{ {', '.join(names)} }};",
            "}",
            "inline constexpr CallInfo calls[kCalls] = {",
            *(
                f'    {{"MPI{"" if name.startswith("X_") else "_"}{name}", Kind::{kind}, Role::{role_}, '
                f"{'true' if blocking(name) else 'false'}}},"
                for name, kind, role_ in zip(names, kinds, roles, strict=True)
            ),
            "};",
            "",
            "}  // namespace elbowroom::pmpi",
            "",
        ]
    )


def shims_text(shims: Sequence[str]) -> str:
    """A file of shims."""
    return "\n\n".join(
        [
            "// Written by lib/pmpi/generate.py.",
            '#include "calls.hpp"\n#include "pmpi/sessions.hpp"\n#include "pmpi/special.hpp"',
            "namespace elbowroom::pmpi {",
            *shims,
            "}  // namespace elbowroom::pmpi\n",
        ]
    )


def fortran_shims(found: Sequence[Prototype]) -> list[str]:
    """The shims of all functions for Fortran."""
    large = {one.name.removesuffix("_c"): one for one in found if one.name.endswith("_c")}
    plain = [one for one in found if not one.name.endswith("_c")]
    shims = [fortran_shim(one, large.get(one.name)) for one in plain]
    return ["namespace fortran {", *shims, "}  // namespace fortran"]


def own_calls_text(found: Sequence[Prototype]) -> str:
    """calls_of_mpi.cpp: functions of MPI that find MPI's at their first call, as lib/pmpi is not linked with
    it (mpi.hpp). exports.map keeps them inside the library.
    """
    prefixed = {f"MPI_{name}": f"PMPI_{name}" for name in _CALLED} | {
        name: name for name in _HANDLES.values()
    }
    shims = []
    for one in found:
        name = prefixed.get(one.name)
        if name is not None:
            declared = ", ".join(one.declared)
            given = ", ".join(f"a{number}" for number in range(1, len(one.arguments) + 1))
            shims.append(
                f'static constinit Next<{one.result}({declared})> next_{name}{{"{name}"}};\n'
                f'extern "C" {one.result} {name}({declared}) {{ return next_{name}()({given}); }}'
            )
    return "\n\n".join(
        [
            "// Written by lib/pmpi/generate.py.",
            '#include "pmpi/shim.hpp"',
            "namespace elbowroom::pmpi {",
            *shims,
            "}  // namespace elbowroom::pmpi\n",
        ]
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    declared = functions(header_text(arguments.compiler, arguments.include))
    found = shimmed(declared)
    if not any(one.name == "MPI_Send" for one in found):
        raise SystemExit(
            "mpi.h: no function MPI_Send is declared there; name the folder of the MPI with --include"
        )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "calls.hpp").write_text(calls_text(found))
    (arguments.out / "shims.cpp").write_text(shims_text([c_shim(one) for one in found]))
    (arguments.out / "shims_fortran.cpp").write_text(shims_text(fortran_shims(found)))
    (arguments.out / "calls_of_mpi.cpp").write_text(own_calls_text(declared))


if __name__ == "__main__":
    main()
