"""JSON lines: one object for each suspect and each node that was lost, with the site."""

import msgspec

from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.formats import AcceptanceFormat


def _text(document: AcceptanceDocument) -> bytes:
    lines = (
        {"site": document.site, **msgspec.to_builtins(one)} for one in (*document.suspects, *document.missing)
    )
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


ACCEPTANCEFORMAT = AcceptanceFormat(name="jsonl", endings=(".jsonl",), text=_text)
