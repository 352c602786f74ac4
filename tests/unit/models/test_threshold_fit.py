from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.curves import Curves, Row, Shape, Situation, Streams
from elbowroom.models.threshold.fit import Method, fit
from elbowroom.models.threshold.law import Threshold, curve


def measured(
    model: Threshold,
    noise: float = 0.0,
    seed: int = 0,
    where: Callable[[Situation], bool] = lambda _: True,
    *,
    faithful: bool = True,
) -> Curves:
    """What a machine that is that model would be measured as, every n and placement that `where` wants."""
    shape = model.shape
    generator = np.random.default_rng(seed)
    rows = []
    for comp_node in range(shape.nodes):
        for comm_node in range(shape.nodes):
            ns = range(1, shape.cores_first_socket + 1)
            for n, truth in zip(ns, curve(model, comp_node, comm_node, ns, faithful=faithful), strict=True):
                values = truth * (1 + noise * generator.standard_normal(4))
                situation = Situation(comp_node=comp_node, comm_node=comm_node, n=n)
                if where(situation):
                    rows.append(row(situation, values.tolist()))
    return Curves(shape=shape, rows=tuple(rows))


def row(situation: Situation, values: list[float] | Streams) -> Row:
    comp_alone, comm_alone, comp_together, comm_together = values
    return Row(
        situation=situation,
        comp_alone=comp_alone,
        comm_alone=comm_alone,
        comp_together=comp_together,
        comm_together=comm_together,
    )


def error(found: Threshold, truth: Threshold, *, faithful: bool) -> float:
    """Mean relative error of both streams together over every n and placement, against what is so."""
    shape = truth.shape
    ns = range(1, shape.cores_first_socket + 1)
    nodes = range(shape.nodes)
    off = [
        np.abs(curve(found, a, b, ns, faithful=faithful) / curve(truth, a, b, ns, faithful=True) - 1)[:, 2:]
        for a in nodes
        for b in nodes
    ]
    return float(np.mean(off))


def mean_error(method: Method, noise: float) -> float:
    models = [published.load(name).model for name in published.names()]
    errors = [
        error(fit(measured(model, noise, seed), method, resamples=0).model, model, faithful=True)
        for seed, model in enumerate(models)
    ]
    return 100 * float(np.mean(errors))


@pytest.mark.parametrize(
    ("method", "noise", "low", "high"),
    [
        ("thesis", 0.0, 0.14, 0.18),
        ("thesis", 0.01, 1.1, 1.9),
        ("thesis", 0.03, 3.2, 4.6),
        ("robust", 0.0, 0.0, 0.06),
        ("robust", 0.01, 0.0, 0.4),
        ("robust", 0.03, 0.0, 1.2),
    ],
)
def test_on_its_own_curves_the_thesis_calibration_is_fragile_and_the_robust_one_is_not(
    method: Method, noise: float, low: float, high: float
) -> None:
    assert low <= mean_error(method, noise) <= high


def test_without_noise_and_repairs_the_thesis_finds_the_parameters_it_was_made_from() -> None:
    model = published.load("occigen").model
    found = fit(measured(model)).model
    assert found.local is not None
    assert model.local is not None
    assert found.local.b_comp_seq == model.local.b_comp_seq
    assert found.local.alpha == model.local.alpha
    assert found.local.t_seq_max == pytest.approx(model.local.t_seq_max)


def test_only_the_sample_placements_are_learned_from() -> None:
    model = published.load("henrisubnuma").model
    samples = measured(model, where=lambda at: at.comp_node == at.comm_node and at.comp_node in (0, 2))
    for method in ("thesis", "robust"):
        whole, part = fit(measured(model), method), fit(samples, method)
        assert whole.model == part.model
        assert whole.rows == part.rows == 2 * 18


def test_the_robust_fit_has_intervals_that_hold_the_truth() -> None:
    held = total = 0
    for seed, name in enumerate(("bora", "henri", "occigen", "pyxis")):
        model = published.load(name).model
        found = fit(measured(model, 0.01, seed, faithful=False), "robust")
        for word, side in (("local", model.local), ("remote", model.remote)):
            for parameter in ("b_comp_seq", "b_comm_seq"):
                interval = found.intervals[word][parameter]
                held += interval.low <= getattr(side, parameter) <= interval.high
                total += 1
                assert interval.high / interval.low < 1.05
    assert held / total >= 0.7


def test_the_same_seed_gives_the_same_intervals() -> None:
    curves = measured(published.load("bora").model, 0.02)
    first, again, other = (fit(curves, "robust", seed=seed, resamples=10) for seed in (3, 3, 4))
    assert first == again
    assert first.intervals != other.intervals


def test_the_bands_hold_most_of_what_was_measured() -> None:
    curves = measured(published.load("henri").model, 0.03, seed=5)
    found = fit(curves, "robust")
    assert set(found.bands) == {"local", "remote"}
    for width in found.bands["local"][:2]:
        assert 0.02 < width < 0.12


@pytest.mark.parametrize("method", ["thesis", "robust"])
def test_scattered_counts_suffice(method: Method) -> None:
    model = published.load("dahu").model
    few = measured(model, where=lambda at: at.n in (1, 4, 7, 10, 13, 16))
    found = fit(few, method)
    assert "local:missing_counts" in found.flags
    assert error(found.model, model, faithful=True) < 0.03


def test_repeated_rows_are_averaged() -> None:
    model = published.load("bora").model
    once, twice = measured(model, 0.05, 1), measured(model, 0.05, 2)
    both = msgspec.structs.replace(once, rows=once.rows + twice.rows)
    found, first, second = (fit(item).model.local for item in (both, once, twice))
    assert found is not None
    assert first is not None
    assert second is not None
    assert found.b_comp_seq == pytest.approx((first.b_comp_seq + second.b_comp_seq) / 2)
    assert fit(both, "robust").rows == 2 * fit(once, "robust").rows


@pytest.mark.parametrize("method", ["thesis", "robust"])
def test_one_placement_gives_one_side(method: Method) -> None:
    model = published.load("henri").model
    found = fit(measured(model, where=lambda at: at.comp_node == at.comm_node == 0), method)
    assert found.model.remote is None
    assert found.flags == ("remote:not_measured",)
    with pytest.raises(UsageError, match="calibrated without remote data"):
        curve(found.model, 1, 1, (3,))


def test_bandwidths_that_were_not_measured_are_done_without() -> None:
    model = published.load("henri").model
    curves = measured(model)
    rows = tuple(
        msgspec.structs.replace(item, comm_alone=None) if item.situation.n != 3 else item
        for item in curves.rows
    )
    holes = msgspec.structs.replace(curves, rows=rows)
    for method in ("thesis", "robust"):
        assert error(fit(holes, method).model, model, faithful=True) < 0.003


def toy(cores: int, streams: Callable[[int], Streams], *, sockets: int = 1) -> Curves:
    shape = Shape(name="toy", cores_first_socket=cores, numa_per_socket=1, sockets=sockets)
    rows = (row(Situation(comp_node=0, comm_node=0, n=n), streams(n)) for n in range(1, cores + 1))
    return Curves(shape=shape, rows=tuple(rows))


def degenerate() -> Iterator[tuple[str, Curves]]:
    yield "one_core", toy(1, lambda n: (4000.0, 10000.0, 3600.0, 9000.0))
    yield "no_contention", toy(8, lambda n: (4000.0 * n, 10000.0, 4000.0 * n, 10000.0))
    yield (
        "negative_slope",
        toy(8, lambda n: (min(4000 * n, 16000) - n, 1e4, min(4000 * n, 12000) + 300 * n, 4e3)),
    )
    yield (
        "n_par_above_n_seq",
        toy(8, lambda n: (min(4000 * n, 16000) - 50 * n, 1e4, min(2000 * n, 12000), 9e3)),
    )
    yield (
        "unstable_network",
        toy(8, lambda n: (4000.0 * n, 1e4 * (1 + 0.3 * math.sin(5 * n)), 3900.0 * n, 7000.0)),
    )


@pytest.mark.parametrize("method", ["thesis", "robust"])
@pytest.mark.parametrize(("flag", "curves"), list(degenerate()))
def test_odd_curves_survive_with_a_flag(flag: str, curves: Curves, method: Method) -> None:
    found = fit(curves, method)
    if (flag, method) != ("n_par_above_n_seq", "robust"):
        assert f"local:{flag}" in found.flags
    said = curve(found.model, 0, 0, range(curves.shape.cores_first_socket + 1))
    assert np.isfinite(said).all()
    assert (said >= 0).all()


def test_fewer_points_than_parameters_are_refused_with_the_number_needed() -> None:
    model = published.load("henri").model
    two = measured(model, where=lambda at: at.n in (1, 18))
    with pytest.raises(UsageError, match=r"local rows 2: 2 of the 3 counts .* measure 1 more, best 1, 18"):
        fit(two)
    alone = toy(4, lambda n: (4000.0, 1e4, 4000.0, 1e4))
    rows = tuple(msgspec.structs.replace(item, comm_alone=None) for item in alone.rows)
    with pytest.raises(UsageError, match="communications alone were not measured"):
        fit(msgspec.structs.replace(alone, rows=rows))


def test_a_side_with_too_few_counts_is_left_out_where_the_other_has_enough() -> None:
    model = published.load("henri").model
    found = fit(measured(model, where=lambda at: at.comp_node == 0 or at.n < 3))
    assert found.flags == ("remote:too_few_counts",)
    assert found.model.local is not None
    assert found.model.remote is None


def test_rows_off_the_samples_alone_teach_nothing() -> None:
    crossed = measured(published.load("henri").model, where=lambda at: at.comp_node != at.comm_node)
    with pytest.raises(UsageError, match="measure comp_node 0 with comm_node 0, and 1 with 1"):
        fit(crossed)


@pytest.mark.parametrize("value", [math.nan, -1.0, 0.0, math.inf])
def test_what_is_no_bandwidth_is_refused_by_its_line(value: float) -> None:
    curves = measured(published.load("henri").model)
    bad = msgspec.structs.replace(curves.rows[4], comp_together=value, source="line 12")
    with pytest.raises(UsageError, match="line 12: comp_together"):
        fit(msgspec.structs.replace(curves, rows=(bad, *curves.rows)))


def test_a_count_beyond_the_socket_is_refused() -> None:
    curves = measured(published.load("henri").model)
    bad = msgspec.structs.replace(curves.rows[4], situation=Situation(comp_node=0, comm_node=0, n=19))
    with pytest.raises(UsageError, match="n = 19: n 19: henri has 18 cores"):
        fit(msgspec.structs.replace(curves, rows=(bad, *curves.rows)))
