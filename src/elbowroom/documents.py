"""Documents: JSON with a schema and a version, which elbowroom writes, and TOML, which people write.

What is wrong with one is an error that names the field, its value and a hint.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

import msgspec

from elbowroom.errors import UsageError, closest
from elbowroom.files import read_document, write_atomically
from elbowroom.quantities import parse_size
from elbowroom.version import __version__

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Normal = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Makes plain data of a file fit a type."""

LEAST, LARGEST = 1e-100, 1e100
"""Magnitudes of numbers in documents; ratios and products of three such numbers are finite."""
LARGEST_WHOLE = 2**63 - 1
"""The largest whole number of TOML, and of the 64-bit integers that libraries take."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class DocumentFormat(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A kind of JSON document: its type, schema and newest version; `name` and `hint` are used in errors."""

    kind: type[T]
    schema: str
    version: int
    name: str
    hint: str
    adapt: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Makes plain data of the stored form fit the type."""
    own: bool = False
    """Whether no person writes such a file, and its numbers need no check."""

    def read(self, path: Path) -> T:
        """The document in a file. Unknown fields are ignored.

        UsageError with the line, or the field and its value, if the file cannot be read, is of another schema
        or of a newer version.
        """
        data = read_document(path, field=self.name, hint=self.hint)
        head = self._head(data, path)
        check_version(path, self.schema, head.get("version"), self.version, head.get("elbowroom"))
        if not self.own:
            _check_numbers(head, str(path), ())
        if self.adapt is not None:
            head = self.adapt(head)
        return convert(head, self.kind, where=str(path), subject=self.name, hint=self.hint)

    def write(self, path: Path, document: T, *, own: bool = False) -> None:
        """Writes the file, whole or not at all; raises as files.write_atomically."""
        write_atomically(path, encode(document), own=own)

    def _head(self, data: bytes, path: Path) -> dict[str, Any]:
        try:
            head = msgspec.json.decode(data)
        except _UNREADABLE as error:
            place = re.search(r"byte (\d+)", str(error))
            line = data[: int(place[1])].count(b"\n") + 1 if place else 1
            raise self._error(f"is damaged: line {line} is not JSON ({error})", path) from error
        if not isinstance(head, dict) or head.get("schema") != self.schema:
            raise self._error(f"does not have the schema {self.schema!r}", path)
        return head

    def _error(self, message: str, path: Path) -> UsageError:
        return UsageError(message, field=self.name, value=str(path), hint=self.hint)


class TomlFormat(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """A kind of TOML file that people write: its type, the `field` of errors on the whole, and the `page`
    that describes it. `of`: what has the keys, `inside`: what has those of its tables (None: their types
    refuse unknown ones; empty: the table's name); `sizes`: fields TABLE.KEY that may be texts such as
    `64KiB`, `amounts`: those that may also be 0; `words` as in `convert`.
    """

    kind: type[S]
    field: str
    page: str
    of: str = ""
    inside: str | None = None
    sizes: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    words: Mapping[str, str] = {}

    def decode(self, source: str | Mapping[str, Any], where: str, normal: Normal | None = None) -> S:
        """A text, or its plain data, as the type; `where` names the file, `normal` makes the data fit.

        UsageError with field, value and hint for what is wrong.
        """
        data = parse_toml(source, field=self.field, where=where) if isinstance(source, str) else source
        if self.inside is not None:
            check_tables(data, self.kind, of=self.of, where=where, inside=self.inside)
        elif self.of:
            check_keys(data, self.kind.__struct_fields__, of=self.of, where=where)
        read = dict(data)
        for field in (*self.amounts, *self.sizes):
            _read_size(read, field, zero=field in self.amounts)
        whole = read if normal is None else normal(read)
        return convert(whole, self.kind, where=where, subject=self.field, page=self.page, words=self.words)


def _read_size(data: dict[str, Any], field: str, *, zero: bool) -> None:
    """Replaces a size that is a text by its bytes."""
    name, _, key = field.partition(".")
    table = data.get(name)
    if isinstance(table, dict) and isinstance(text := table.get(key), str):
        nothing = zero and text.strip() in ("0", "0B", "0 B")
        data[name] = {**table, key: 0 if nothing else parse_size(text, field)}


def encode(document: object) -> bytes:
    """A document as JSON in lines; in its stored form where it has one of its own (`plain`)."""
    plain = getattr(document, "plain", None)
    return msgspec.json.format(msgspec.json.encode(document if plain is None else plain()), indent=1) + b"\n"


def check_version(path: Path, schema: str, version: object, newest: int, release: object = None) -> None:
    """UsageError for a file of a newer schema version than `newest`, or without a version.

    `release`: the release of elbowroom that wrote the file, if it is known.
    """
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UsageError(
            f"has no version of schema {schema}",
            field="file",
            value=str(path),
            hint=f"elbowroom {__version__} reads versions 1 to {newest}: restore the file from a copy",
        )
    if version > newest:
        # This release did not write it, whatever the file says.
        wrote = f"elbowroom {release}" if release and release != __version__ else "the release that wrote it"
        raise UsageError(
            f"was written by a newer release ({schema} version {version}; elbowroom {__version__} reads up "
            f"to version {newest})",
            field="file",
            value=str(path),
            hint=f"read it with {wrote} or a later one",
        )


def parse_toml(text: str, *, field: str, where: str) -> dict[str, Any]:
    """The tables and values of a TOML text; UsageError with the line if it is none, and with the key of a
    number out of range.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"not a TOML file: {error}", field=field, value=where, hint="correct that line"
        ) from error
    _check_numbers(data, where, ())
    return data


def _check_numbers(value: Any, where: str, keys: tuple[str, ...]) -> None:
    """UsageError for the first number that is not finite or out of range."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(item, where, (*keys, key))
    elif isinstance(value, list):
        for item in value:
            _check_numbers(item, where, keys)
    elif isinstance(value, int | float) and value != 0:
        least, largest = (1, LARGEST_WHOLE) if isinstance(value, int) else (LEAST, LARGEST)
        if not least <= abs(value) <= largest:
            raise UsageError(
                f"is out of range in {where}",
                field=".".join(keys),
                value=value,
                hint=f"give 0, or a number whose magnitude is {least:g} to {largest:g}",
            )


def check_keys(
    data: Mapping[str, Any], known: Collection[str], *, of: str, where: str = "", prefix: str = ""
) -> None:
    """UsageError for a key that is not `known`; `of` names what has the keys, `where` the file."""
    for key, value in data.items():
        if key not in known:
            raise UsageError(
                f"no such key of {of}{f', in {where}' if where else ''}",
                field=f"{prefix}{key}",
                value=_shown(value),
                hint=closest(key, known) if known else f"{of} has no keys of its own: leave it out",
            )


def check_tables(
    data: Mapping[str, Any], kind: type[msgspec.Struct], *, of: str, where: str = "", inside: str = ""
) -> None:
    """UsageError for a key that `kind` does not have, or one of its tables or lists of tables; `inside`
    names what these have, by default the table.
    """
    check_keys(data, kind.__struct_fields__, of=of, where=where)
    for field in msgspec.structs.fields(kind):
        name, value = field.name, data.get(field.name)
        keys = [key for struct in _structs(field.type) for key in struct.__struct_fields__]
        for row in value if isinstance(value, list) else [value]:
            if isinstance(row, dict) and keys:
                check_keys(row, keys, of=inside or name, where=where, prefix=f"{name}.")


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    """The structs in a type: that of a table, or of the items of a list."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in get_args(kind) for struct in _structs(part)]


def convert(
    data: Mapping[str, Any],
    kind: type[T],
    *,
    subject: str,
    where: str = "",
    hint: str = "",
    page: str = "",
    prefix: str = "",
    words: Mapping[str, str] | None = None,
) -> T:
    """`data`, which came from `where`, as a `kind`; UsageError with field, value and what is expected.

    `subject`: the field to name if msgspec names none; `hint` replaces the one that says what is expected;
    `page`: the page that describes the format; `prefix`: of the fields, in front of those in `data`;
    `words`: what fields accept, where their type does not say it.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        names = re.findall(r"\w+", path)
        place = f" in {where}" if where else ""
        missing = re.search(r"missing required field `(\w+)`", message)
        if missing:
            field = prefix + ".".join([*names, missing[1]])
            raise UsageError(f"is missing{place}", field=field, hint=hint or f"add it, see {page}") from error
        field = ".".join(name for name in names if not name.isdigit())
        sentence = message.replace("`", "")
        raise UsageError(
            f"{sentence[:1].lower()}{sentence[1:]}{place}",
            field=f"{prefix}{field}" if field else subject,
            value=_shown(_value_at(data, names)),
            hint=hint or _expected(sentence, (words or {}).get(field.rpartition(".")[2]), page),
        ) from error


def _decode(kind: Any, plain: Any) -> Any:
    """Types that msgspec does not know decode their plain data."""
    return kind.decode(plain)


def _expected(sentence: str, words: str | None, page: str) -> str:
    expected = re.search(r"Expected (.*?)(, got|$)", sentence)
    if expected:
        return f"give {expected[1]}"
    return f"give one of: {words}" if words else f"see {page}"


def _value_at(data: Any, words: list[str]) -> Any:
    for word in words:
        if isinstance(data, list) and word.isdigit() and int(word) < len(data):
            data = data[int(word)]
        elif isinstance(data, dict):
            data = data.get(word)
    return data


def _shown(value: Any) -> Any:
    """A value as errors repeat it; None for what is too large or no value of its own."""
    return value if isinstance(value, str | int | float | bool | list) else None
