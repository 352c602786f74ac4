"""The drawing of one small figure, whole: a change of the page's looks must be meant."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from elbowroom.draw.figure import Axis, Figure, Mark, Series
from elbowroom.draw.svg import svg


def test_a_figure_with_two_axes_a_band_and_a_mark_is_drawn_as_before(snapshot: SnapshotAssertion) -> None:
    sizes = (4.0, 65536.0, 67108864.0)
    drawn = Figure(
        name="sizes",
        title="Bandwidth over message size",
        x=Axis(label="message size", scale="log2", bytes=True),
        left=Axis(label="network bandwidth (MB/s)", scale="log10"),
        below=Axis(label="TRIAD (MB/s)"),
        series=(
            Series(
                name="network bandwidth together",
                side="communication",
                style="together",
                x=sizes,
                y=(2.0, 900.0, 7000.0),
                low=(1.0, 800.0, 6500.0),
                high=(3.0, 1000.0, 7500.0),
            ),
            Series(
                name="TRIAD alone",
                side="computation",
                style="alone",
                x=sizes,
                y=(1e4, 1e4, 9e3),
                axis="below",
            ),
        ),
        marks=(Mark(x=65536.0, text="computation suffers from 64 KiB"),),
    )
    assert svg(drawn).replace("><", ">\n<") == snapshot
