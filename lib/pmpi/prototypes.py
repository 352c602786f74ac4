"""The functions that an mpi.h declares."""

from __future__ import annotations

import re
from typing import NamedTuple


class Argument(NamedTuple):
    """`type` without the name, arrays as pointers: "const int*"."""

    type: str

    @property
    def is_text(self) -> bool:
        """Whether Fortran hands on its length behind all other arguments."""
        return re.fullmatch(r"(const )?char\*+( const\*)?", self.type) is not None


class Prototype(NamedTuple):
    """A function of MPI; `declared` are its arguments as the header has them, but named a1, a2, ..."""

    name: str
    result: str
    arguments: tuple[Argument, ...]
    declared: tuple[str, ...]
    variadic: bool


_FUNCTION = re.compile(r"\b((?:\w+[\s*]+)+?)(MPIX?_\w+)\s*\(([^;{}]*)\)\s*;")


def functions(text: str) -> list[Prototype]:
    """All functions named MPI_ or MPIX_ in the preprocessed text of a header, by name, each once."""
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    text = _without_attributes(text)
    found = {}
    for result, name, inside in _FUNCTION.findall(text):
        words = [word for word in result.split() if word not in ("extern", "static", "inline")]
        if not words or words[0] in ("typedef", "return"):
            continue
        found.setdefault(name, _prototype(name, " ".join(words), inside))
    return [found[name] for name in sorted(found)]


def _without_attributes(text: str) -> str:
    """Without __attribute__((...)) and __asm__, whose parentheses nest."""
    kept, at = [], 0
    for match in re.finditer(r"__attribute__\s*\(", text):
        if match.start() < at:
            continue
        kept.append(text[at : match.start()])
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
    return "".join(kept) + text[at:]


def _prototype(name: str, result: str, inside: str) -> Prototype:
    parts = [" ".join(part.split()) for part in _split(inside)]
    if parts in ([""], ["void"]):
        parts = []
    variadic = bool(parts) and parts[-1] == "..."
    parts = parts[:-1] if variadic else parts
    arguments, declared = [], []
    for number, part in enumerate(parts, 1):
        kind, ending = _named(part)
        declared.append(f"{kind} a{number}{ending}")
        arguments.append(Argument(_normal(kind, ending)))
    return Prototype(name, result, tuple(arguments), tuple(declared), variadic)


def _split(inside: str) -> list[str]:
    """At commas outside parentheses."""
    parts, depth = [""], 0
    for letter in inside:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _named(part: str) -> tuple[str, str]:
    """A parameter's type, and what stands behind its name: ("int", "[][3]")."""
    match = re.fullmatch(r"(.*?)((?:\s*\[[^]]*\])*)", part)
    assert match is not None
    front, ending = match.group(1).strip(), match.group(2).replace(" ", "")
    if "(" in front:
        raise ValueError(f"'{part}': a parameter that is a function; give it a type of its own")
    words = re.match(r"(.*[\s*])(\w+)$", front)
    named = words is not None and words.group(1).strip() not in ("const", "struct", "unsigned", "long")
    return (words.group(1).strip() if words is not None and named else front), ending


def _normal(kind: str, ending: str) -> str:
    """One spelling for one type: "const int*" of `const int x[]` and of `int const *x`."""
    spelled = re.sub(r"\s*\*\s*", "*", kind + "*" * ending.count("["))
    match = re.fullmatch(r"(\w+) const(\*.*)", spelled)
    return f"const {match.group(1)}{match.group(2)}" if match else spelled
