"""The type of job.toml: a job in which sizes may be texts, and one value stands for a list of one."""

from __future__ import annotations

from typing import Annotated, Any, Union

import msgspec
from msgspec import Meta

from elbowroom.advise.job import Best, Count, Job, JobStep, May, Setup, Share

SizeText = Annotated[str, Meta(description="a size: 64KiB, 64MB")]
CountText = Annotated[str, Meta(description="counts, such as 1-8, or every")]


def _as_written(kind: type[msgspec.Struct], **written: tuple[Any, ...]) -> Any:
    """The type with other types, and defaults where there are any, of some of its fields."""
    fields = {
        field.name: (field.type,) if field.required else (field.type, field.default)
        for field in msgspec.structs.fields(kind)
    } | written
    listed: list[Any] = [(name, *rest) for name, rest in fields.items()]
    space = {"__doc__": kind.__doc__}
    return msgspec.defstruct(kind.__name__, listed, namespace=space, kw_only=True, forbid_unknown_fields=True)


def _one_or_more(*kinds: Any) -> tuple[Any, None]:
    item: Any = Union[kinds]  # noqa: UP007
    return Union[tuple.__class_getitem__((item, ...)), item, None], None  # noqa: UP007


_COUNTS = ("cores", "cores_other", "comp_node", "comp_node_other", "comm_node", "comm_socket")

JobFile: type[msgspec.Struct] = _as_written(
    Job,
    name=(str, ""),
    step=(_as_written(JobStep, comm_bytes=(float | SizeText,), comp_bytes=(float | SizeText | None, None)),),
    now=(_as_written(Setup, size=(int | SizeText | None, None)),),
    may=(
        _as_written(
            May,
            **dict.fromkeys(_COUNTS, _one_or_more(Count, CountText)),
            comm_threads=_one_or_more(Annotated[int, Meta(ge=1)], CountText),
            size=_one_or_more(int, SizeText),
            overlap=_one_or_more(bool),
            w=(tuple[Share, ...] | Share | Best | None, None),
        ),
    ),
)
