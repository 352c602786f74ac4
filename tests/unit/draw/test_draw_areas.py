"""Areas, points, named points and panels of figures."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.draw import maps, palette, scales
from elbowroom.draw.figure import Axis, Figure, Label, Series
from elbowroom.draw.files import save, save_panels
from elbowroom.draw.svg import svg
from elbowroom.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"
X = (1.0, 2.0, 3.0)


def area(name: str, y: tuple[float, ...], axis: str = "left") -> Series:
    return Series(name=name, side="computation", style="together", drawn="area", x=X, y=y, axis=axis)  # type: ignore[arg-type]


def figure(*series: Series, **changes: object) -> Figure:
    given_ = {
        "name": "f",
        "title": "title",
        "x": Axis(label="cores", whole=True),
        "left": Axis(label="bandwidth (MB/s)"),
        "series": series,
        **changes,
    }
    return Figure(**given_)  # type: ignore[arg-type]


def group(drawing: str, index: int) -> ET.Element:
    found = [g for g in ET.fromstring(drawing).iter(f"{SVG}g") if "series" in g.get("class", "").split()]
    return found[index]


def heights(path: str, scale: scales.AxisScale, top: float) -> list[float]:
    """The values at the vertices of one run of a path."""
    steps = [float(step) for step in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", path)][1::2]
    places = [sum(steps[: i + 1]) for i in range(len(steps))]
    return [scale.low + (1 - (y - top) / 250) * (scale.high - scale.low) for y in places]


def test_an_area_stands_on_the_areas_before_it_on_its_axis() -> None:
    stack = figure(
        area("a", (1.0, 2.0, 3.0)), area("b", (10.0, 20.0, 30.0)), area("c", (5.0, 5.0, 5.0), "below")
    )
    assert scales.bases(stack) == ((0, 0, 0), (1, 2, 3), (0, 0, 0))


def test_the_axis_of_areas_shows_their_sum_and_the_path_goes_there() -> None:
    stack = figure(area("a", (10.0, 20.0, 30.0)), area("b", (10.0, 20.0, 30.0)))
    scale = scales.vertical(stack, "left")
    assert scale.place(60.0) <= 1
    line = group(svg(stack), 1).findall(f"{SVG}path")[1].get("d")
    assert line is not None
    assert heights(line, scale, top=26.0) == pytest.approx([20, 40, 60], abs=0.05)


def test_an_area_tells_its_own_height_to_who_points_at_it() -> None:
    drawn = svg(figure(area("a", (1.0, 2.0, 3.0)), area("b", (10.0, 20.0, 30.0))))
    assert group(drawn, 1).get("data-median") == "10|20|30"


def test_an_area_is_cut_where_the_one_below_it_has_no_value() -> None:
    drawn = svg(figure(area("a", (1.0, math.nan, 3.0)), area("b", (10.0, 20.0, 30.0))))
    assert group(drawn, 1).get("data-median") == "10|30"


def test_points_have_whiskers_and_markers_but_no_line() -> None:
    points = Series(
        name="measured alone",
        side="communication",
        style="alone",
        drawn="points",
        x=X,
        y=(1.0, 2.0, 3.0),
        low=(0.5, 1.5, 2.5),
        high=(1.5, 2.5, 3.5),
    )
    drawn = group(svg(figure(points)), 0)
    assert "points" in drawn.get("class", "")
    whiskers, line = drawn.findall(f"{SVG}path")
    assert whiskers.get("class") == "whisker"
    assert whiskers.get("d", "").count("V") == 3
    assert "marker" in line.get("style", "")


def test_measured_points_and_the_line_of_a_model_are_one_entry_of_the_legend() -> None:
    points = Series(name="reception", side="communication", style="together", drawn="points", x=X, y=X)
    line = msgspec.structs.replace(points, drawn="smooth")
    looks = palette.looks(figure(points, line))
    assert len({look.colour for look in looks}) == 1
    (key,) = palette.keys(looks)
    assert (key.drawn, key.marker) == ("smooth", looks[0].marker)
    assert svg(figure(points, line)).count("reception, together</text>") == 1


def test_a_curve_says_what_its_values_and_its_band_are() -> None:
    model = Series(
        name="model",
        side="communication",
        style="line",
        drawn="smooth",
        x=X,
        y=X,
        value="predicted",
        band="90 % interval",
    )
    drawn = group(svg(figure(model)), 0)
    assert (drawn.get("data-value"), drawn.get("data-band")) == ("predicted", "90 % interval")


def test_an_axis_shows_the_value_it_has_to_reach() -> None:
    reaching = figure(area("a", X), left=Axis(label="y", reach=500.0))
    assert 0.9 < scales.vertical(reaching, "left").place(500.0) <= 1


@given(st.integers(min_value=2, max_value=300))
def test_an_axis_of_whole_things_has_ticks_at_whole_numbers(most: int) -> None:
    scale = scales.axis_scale(Axis(label="cores", whole=True), [1.0, float(most)], from_zero=False)
    assert scale.ticks
    assert all(tick.value.is_integer() for tick in scale.ticks)


@given(
    st.lists(
        st.tuples(st.floats(min_value=100, max_value=400), st.floats(min_value=60, max_value=190)),
        min_size=1,
        max_size=3,
    )
)
def test_a_name_stands_inside_the_plot(spots: list[tuple[float, float]]) -> None:
    for place in maps.places(spots, [60.0] * len(spots), 500, 250):
        assert 30 <= place.x <= 470
        assert 0 <= place.y <= 250


def test_two_points_at_one_place_have_names_that_do_not_cover_each_other() -> None:
    one, two = maps.places([(200, 100), (202, 101)], [80, 80], 500, 250)
    assert abs(one.x - two.x) >= 80 or abs(one.y - two.y) >= maps.HEIGHT


def test_a_name_at_the_edge_of_the_plot_goes_inwards() -> None:
    (place,) = maps.places([(2, 248)], [70], 500, 250)
    assert place.x > 2 + 35
    assert place.y < 248


def test_a_named_point_is_a_dot_with_its_name() -> None:
    drawn = ET.fromstring(svg(figure(area("a", X), labels=(Label(x=2.0, y=2.0, text="T_max & more"),))))
    assert [text.text for text in drawn.iter(f"{SVG}text")].count("T_max & more") == 1
    assert len([c for c in drawn.iter(f"{SVG}circle") if c.get("class") == "point"]) == 1


def test_a_highlighted_panel_has_a_thick_frame_and_says_why() -> None:
    drawn = svg(figure(area("a", X), highlight="calibrated here"))
    assert 'class="frame strong"' in drawn
    assert "calibrated here" in ET.fromstring(drawn).findtext(f"{SVG}desc", "")


def test_areas_points_and_names_are_drawn_into_files_as_well(tmp_path: Path) -> None:
    points = Series(name="b", side="communication", style="alone", drawn="points", x=X, y=X, low=X, high=X)
    named = figure(area("a", X), points, labels=(Label(x=2.0, y=2.0, text="T_max"),), highlight="here")
    save(named, tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    assert "T_max" in text
    assert "title (here)" in text


def test_panels_are_one_file_with_the_title_of_each(tmp_path: Path) -> None:
    panels = [
        msgspec.structs.replace(figure(area("a", X), caption="said once"), title=f"panel {i}")
        for i in range(3)
    ]
    save_panels(panels, tmp_path / "all.svg", columns=2, title="henri")
    text = (tmp_path / "all.svg").read_text()
    assert all(f"panel {i}" in text for i in range(3))
    assert text.count("a, together") == 1
    assert text.count(">said once<") == 1
    assert text.count(">bandwidth (MB/s)<") == 2
    with pytest.raises(UsageError, match=r"\.png or \.svg"):
        save_panels(panels, tmp_path / "all.pdf", columns=2, title="henri")
