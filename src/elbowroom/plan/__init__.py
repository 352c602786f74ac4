"""Plans: what is asked for. Reading, changing, expanding, ordering and refusing them; pure.

The room's door: `load`, `apply`, `order`, `request`, `estimate`, `validate`, sizes and cores as people write
them.
"""

from elbowroom.plan.ordering import estimate, order, request
from elbowroom.plan.point import Expansion, Note, Placement, Point, Unit
from elbowroom.plan.reading import Overrides, Plan, Steady, Sweep, apply, load, names
from elbowroom.plan.sizes import format_cores, format_size, parse_cores, parse_size
from elbowroom.plan.validating import ranks_needed, validate

__all__ = [
    "Expansion",
    "Note",
    "Overrides",
    "Placement",
    "Plan",
    "Point",
    "Steady",
    "Sweep",
    "Unit",
    "apply",
    "estimate",
    "format_cores",
    "format_size",
    "load",
    "names",
    "order",
    "parse_cores",
    "parse_size",
    "ranks_needed",
    "request",
    "validate",
]
