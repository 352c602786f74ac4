"""Documents in JSON are read piece by piece, whatever is in them and wherever a block of the file ends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.trace.overlap import json_stream
from elbowroom.trace.overlap.json_stream import JsonStream

ANY = msgspec.json.Decoder(list[Any])
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12)
RECORDS = st.lists(
    st.dictionaries(st.text(max_size=8), SCALARS | st.lists(st.dictionaries(st.text(), SCALARS)))
)


class Pieces:
    """A source of bytes in blocks of a few."""

    def __init__(self, data: bytes, size: int) -> None:
        self.blocks = [data[at : at + size] for at in range(0, len(data), size)]
        self.doubt = ""

    def read(self) -> bytes:
        return self.blocks.pop(0) if self.blocks else b""


@pytest.fixture(autouse=True, scope="module")
def _small_blocks():
    patch = pytest.MonkeyPatch()
    patch.setattr(json_stream, "BLOCK", 16)
    yield
    patch.undo()


def stream(value: Any, size: int) -> JsonStream:
    return JsonStream(Pieces(json.dumps(value).encode(), size))  # type: ignore[arg-type]


def skip_members(read: JsonStream) -> None:
    for _ in read.members():
        read.skip()


def skip_all(path: Path) -> None:
    with json_stream.json_stream(path, "its program") as read:
        skip_members(read)


@given(RECORDS, st.integers(1, 40))
def test_batches_hold_all_values_of_an_array_in_order(records: list[Any], size: int) -> None:
    read = stream({"a": records, "b": 7}, size)
    found = {
        key: [one for batch in read.batches(ANY) for one in batch] if key == "a" else read.value(int)
        for key in read.members()
    }
    read.finish()
    assert found == {"a": records, "b": 7}


@given(
    st.dictionaries(st.text(), SCALARS | RECORDS | st.lists(SCALARS)), SCALARS | RECORDS, st.integers(1, 40)
)
def test_what_is_skipped_leaves_the_next_value_as_it_is(
    others: dict[str, Any], value: Any, size: int
) -> None:
    read = stream([others, value], size)
    for at, _ in enumerate(read.items()):
        if at == 0:
            read.skip()
        else:
            assert read.value(Any) == value


@given(RECORDS, st.data())
def test_a_document_that_ends_early_is_damaged(records: list[Any], data: st.DataObject) -> None:
    text = json.dumps({"a": records}).encode()
    cut = data.draw(st.integers(0, len(text) - 1))
    read = JsonStream(Pieces(text[:cut], 16))  # type: ignore[arg-type]
    with pytest.raises(msgspec.DecodeError):
        skip_members(read)


def test_compressed_data_that_are_cut_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"a": list(range(10_000))}).encode())[:-900])
    with pytest.raises(UsageError, match=r"the compressed data is cut.*write it again with its program"):
        skip_all(path)


def test_what_follows_a_document_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"a": 1} {"b": 2}')
    with pytest.raises(msgspec.DecodeError, match="something follows"):
        skip_all(path)
