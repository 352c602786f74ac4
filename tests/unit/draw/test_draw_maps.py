"""Maps: shades, hatches and lines of fields on a grid, second scales, whiskers, arrows, names of regions."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.draw import maps, scales
from elbowroom.draw.figure import Arrow, Axis, Field, Figure, Label, NamedRegion, Second
from elbowroom.draw.files import save, save_panels
from elbowroom.draw.svg import describe, svg

SVG = "{http://www.w3.org/2000/svg}"
X, Y = (0.5, 1.0, 2.0, 3.0, 3.5), (1.0, 4.0, 16.0)
RISING = tuple(X for _ in Y)


def area(outlines: list[list[maps.Spot]]) -> float:
    """Signed: positive where the outlines go counterclockwise."""
    return sum(
        (x0 * y1 - x1 * y0) / 2 for line in outlines for (x0, y0), (x1, y1) in pairwise([*line, line[0]])
    )


def field(**changes: object) -> Field:
    readings = tuple(("", "a", "b", "c", "") for _ in Y)
    given_ = {
        "name": "kept",
        "side": "communication",
        "drawn": "shades",
        "x": X,
        "y": Y,
        "values": RISING,
        "levels": (1.5, 2.5),
        "texts": ("low", "middle", "high"),
        "readings": readings,
        "rows": ("small", "medium", "large"),
        "value": "kept",
        **changes,
    }
    return Field(**given_)  # type: ignore[arg-type]


def lines() -> Field:
    return field(name="lines", side="computation", drawn="lines", texts=("1.5", "2.5"), readings=(), rows=())


def figure(*fields: Field, **changes: object) -> Figure:
    given_ = {
        "name": "m",
        "title": "map",
        "x": Axis(label="cores", whole=True, second=Second(label="asked (GB/s)", ticks=((2.0, "18"),))),
        "left": Axis(
            label="size", scale="log2", bytes=True, second=Second(label="asks", ticks=((4.0, "7"),))
        ),
        "fields": fields or (field(),),
        **changes,
    }
    return Figure(**given_)  # type: ignore[arg-type]


def texts(drawing: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(drawing).iter(f"{SVG}text")]


def test_an_outline_goes_where_the_value_passes_the_level_and_along_the_ends() -> None:
    (line,) = maps.outlines((0, 1, 2), (0, 1), ((0, 1, 2), (0, 1, 2)), 0.5)
    assert set(line) == {(0.5, 0), (2, 0), (2, 1), (0.5, 1), (1, 0), (1, 1)}
    assert area([line]) == pytest.approx(1.5)


def test_a_line_goes_along_the_level_only() -> None:
    (line,) = maps.lines((0, 1, 2), (0, 1), ((0, 1, 2), (0, 1, 2)), 0.5)
    assert sorted(line) == [(0.5, 0), (0.5, 1)]


def test_a_hole_is_outlined_the_other_way_round() -> None:
    values = [[1.0] * 5 for _ in range(5)]
    values[2][2] = 0.0
    result = maps.outlines(range(5), range(5), values, 0.5)
    assert sorted(round(area([line]), 6) for line in result) == [-0.5, 16.0]


@pytest.mark.parametrize(("middle", "parts"), [((0.9, 0.0), 2), ((1.0, 0.4), 1)])
def test_opposite_corners_are_joined_where_the_middle_of_the_cell_is_above(
    middle: tuple[float, float], parts: int
) -> None:
    high, low = middle
    for values in (((high, low), (low, high)), ((low, high), (high, low))):
        assert len(maps.outlines((0, 1), (0, 1), values, 0.5)) == parts


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=3, max_size=3))
@settings(max_examples=40)
def test_above_and_below_a_level_are_the_whole_plot(values: list[list[int]]) -> None:
    grid = [[float(v) for v in row] for row in values]
    below = [[-v for v in row] for row in grid]
    xs, ys = (0.0, 1.0, 3.0, 4.0), (0.0, 2.0, 3.0)
    above = area(maps.outlines(xs, ys, grid, 4.3))
    assert above + area(maps.outlines(xs, ys, below, -4.3)) == pytest.approx(12.0)
    assert above >= 0


def test_a_map_reaches_from_end_to_end_of_its_grid() -> None:
    assert (scales.horizontal(figure()).low, scales.horizontal(figure()).high) == (0.5, 3.5)
    up = scales.vertical(figure(), "left")
    assert (up.low, up.high) == (1.0, 16.0)
    assert [tick.label for tick in up.ticks if tick.label] == ["1 B", "2 B", "4 B", "8 B", "16 B"]


def test_every_level_is_one_shade_more_and_the_legend_names_each() -> None:
    drawn = svg(figure())
    assert len(re.findall(r'<path class="shade blue"', drawn)) == 2
    assert [text for text in texts(drawn) if text in ("low", "middle", "high")] == ["low", "middle", "high"]
    opacities = [float(value) for value in re.findall(r"fill-opacity:([\d.]+)\"", drawn)]
    assert opacities == pytest.approx([maps.opacity(k) for k in range(3)], abs=1e-3)


def test_a_level_that_is_nowhere_passed_is_not_drawn() -> None:
    assert "shade" not in svg(figure(field(levels=(7.0, 8.0)))).replace("shades", "")


def test_a_hatch_is_told_from_another_by_its_direction() -> None:
    hatches = [field(name=way, drawn=way, texts=(), readings=(), rows=()) for way in ("rising", "falling")]
    drawn = svg(figure(*hatches))
    assert {"rotate(45)", "rotate(-45)"} == set(re.findall(r'patternTransform="(.*?)"', drawn))
    for way in ("rising", "falling"):
        assert drawn.count(f"url(#h-m-{way})") == 2


def test_lines_carry_their_texts_where_they_run() -> None:
    drawn = ET.fromstring(svg(figure(lines())))
    labels = {t.text: t for t in drawn.iter(f"{SVG}text") if "level" in t.get("class", "")}
    assert set(labels) == {"1.5", "2.5"}
    assert float(labels["1.5"].get("x", 0)) < float(labels["2.5"].get("x", 0))


def test_a_second_scale_stands_across_the_plot() -> None:
    drawn = svg(figure())
    assert {"18", "7", "asked (GB/s)", "asks"} <= set(texts(drawn))


def test_who_points_at_a_map_is_told_what_its_nodes_say() -> None:
    groups = [
        g for g in ET.fromstring(svg(figure())).iter(f"{SVG}g") if "readings" in g.get("class", "").split()
    ]
    assert [g.get("data-name") for g in groups] == ["small", "medium", "large"]
    assert {g.get("data-median") for g in groups} == {"a|b|c"}
    assert ET.fromstring(svg(figure())).get("data-x") == "1|2|3"


def test_a_region_has_its_name_inside_where_it_fits_and_else_none() -> None:
    wide = tuple(tuple(x > 1.5 for x in X) for _ in Y)
    narrow = tuple(tuple(x > 3.2 for x in X) for _ in Y)
    regions = [
        NamedRegion(name="here", x=X, y=Y, inside=wide),
        NamedRegion(name="a name too long", x=X, y=Y, inside=narrow),
    ]
    drawn = ET.fromstring(svg(figure(regions=regions)))
    (name,) = [t for t in drawn.iter(f"{SVG}text") if "region" in t.get("class", "")]
    assert name.text == "here"
    assert float(name.get("x", 0)) > 78 + (600 - 78 - 66) / 3


def test_a_point_has_whiskers_a_name_of_two_lines_and_a_ring_where_it_is_hollow() -> None:
    labels = (
        Label(x=1.0, y=2.0, text="now: 3 ms\nkept 0.5", across=(1.0, 2.0), up=(2.0, 4.0)),
        Label(x=3.0, y=8.0, text="moved", hollow=True),
    )
    drawn = svg(figure(labels=labels))
    assert {"now: 3 ms", "kept 0.5"} <= set(texts(drawn))
    assert drawn.count('class="reach"') == 2
    assert drawn.count('class="point hollow"') == 1
    assert "now: 3 ms kept 0.5." in describe(figure(labels=labels))


def test_an_arrow_leaves_its_points_free_and_is_left_out_where_they_touch() -> None:
    far = figure(arrows=(Arrow(start=(1.0, 2.0), end=(3.0, 8.0)),))
    near = figure(arrows=(Arrow(start=(1.0, 2.0), end=(1.01, 2.0)),))
    assert svg(far).count('class="arrow-head"') == 1
    assert "arrow-head" not in svg(near)


def test_a_map_is_drawn_into_files_as_well(tmp_path: Path) -> None:
    labels = (Label(x=1.0, y=2.0, text="now\n3 ms", across=(1.0, 2.0), up=(2.0, 4.0)),)
    hatch = field(name="hatched", drawn="rising", texts=(), readings=(), rows=())
    created = figure(
        field(), hatch, lines(), labels=labels, arrows=(Arrow(start=(1.0, 2.0), end=(3.0, 8.0)),),
        regions=(NamedRegion(name="here", x=X, y=Y, inside=tuple((True,) * len(X) for _ in Y)),),
    )  # fmt: skip
    save(created, tmp_path / "m.svg")
    result = (tmp_path / "m.svg").read_text()
    for text in ("kept:", "middle", "hatched", ">1.5<", ">here<", ">3 ms<", "asked (GB/s)", ">18<", ">7<"):
        assert text in result
    assert "<pattern" in result


def test_panels_that_are_not_shared_have_legends_of_their_own(tmp_path: Path) -> None:
    other = msgspec.structs.replace(figure(field(name="other")), title="second")
    save_panels([figure(), other], tmp_path / "p.svg", columns=2, title="job", shared=False)
    result = (tmp_path / "p.svg").read_text()
    assert "kept:" in result
    assert "other:" in result
    assert result.count(">size<") == 2
