from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.models.curves import Shape
from elbowroom.models.threshold.law import Parameters, Threshold, bandwidths, curve, total

CORES = 24


@st.composite
def parameters(draw: st.DrawFn) -> Parameters:
    """Any parameters, also those that a noisy or odd measurement gives: peaks in the wrong order, losses that
    are gains, communications that gain.
    """
    b_comp = draw(st.floats(500, 10000))
    b_comm = draw(st.floats(500, 25000))
    t_seq = draw(st.floats(b_comp, 24 * b_comp))
    return Parameters(
        n_par_max=draw(st.integers(1, CORES)),
        t_par_max=draw(st.floats(b_comm, t_seq + b_comm)),
        n_seq_max=draw(st.integers(1, CORES)),
        t_seq_max=t_seq,
        t_par_max2=draw(st.floats(b_comm, t_seq + b_comm)),
        alpha=draw(st.floats(0, 1.1)),
        delta_l=draw(st.floats(-100, 1000)),
        delta_r=draw(st.floats(-100, 1000)),
        b_comp_seq=b_comp,
        b_comm_seq=b_comm,
    )


@settings(max_examples=60)
@given(parameters())
def test_repaired_nobody_gains_by_company(p: Parameters) -> None:
    found = bandwidths(p, CORES)
    assert (found.comp_together <= found.comp_alone).all()
    assert (found.comm_together <= p.b_comm_seq).all()
    assert (found.comp_together >= 0).all()
    assert (found.comm_together >= 0).all()


@settings(max_examples=60)
@given(parameters())
def test_repaired_computations_get_no_more_than_communications_leave_below_the_threshold(
    p: Parameters,
) -> None:
    found = bandwidths(p, CORES)
    left = np.maximum(total(p, np.arange(CORES + 1), CORES) - found.comm_together, 0)
    assert (found.comp_together <= left * (1 + 1e-9) + 1e-6)[1:].all()


@settings(max_examples=60)
@given(parameters(), parameters(), st.integers(0, 3), st.integers(0, 3))
def test_many_counts_at_once_are_the_counts_one_by_one(
    local: Parameters, remote: Parameters, comp_node: int, comm_node: int
) -> None:
    shape = Shape(name="any", cores_first_socket=CORES, numa_per_socket=2)
    model = Threshold(shape=shape, local=local, remote=remote)
    for faithful in (False, True):
        whole = curve(model, comp_node, comm_node, range(CORES + 1), faithful=faithful)
        for n in (0, 1, 7, CORES):
            one = curve(model, comp_node, comm_node, (n,), faithful=faithful)
            assert (one[0] == whole[n]).all()
