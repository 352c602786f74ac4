"""What measured and simulated steps of the diffusion solver share."""

CELL_FLOPS = 12
"""Operations of a cell in a step: three for each of its faces (apps/diffusion/sweep.hpp)."""
