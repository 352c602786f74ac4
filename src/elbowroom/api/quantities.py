"""Numbers, sizes, lists of cores and durations: reading them, and writing them for people."""

from elbowroom.broadcast.simulated import parse_rate as parse_rate
from elbowroom.draw.numbers import number as number
from elbowroom.draw.numbers import rounded_size as rounded_size
from elbowroom.draw.numbers import size as size
from elbowroom.draw.numbers import span as span
from elbowroom.draw.numbers import with_span as with_span
from elbowroom.measure.progress import Progress as Progress
from elbowroom.measure.progress import duration as duration
from elbowroom.quantities import format_cores as format_cores
from elbowroom.quantities import format_size as format_size
from elbowroom.quantities import parse_cores as parse_cores
from elbowroom.quantities import parse_duration as parse_duration
from elbowroom.quantities import parse_size as parse_size
from elbowroom.quantities import short_cores as short_cores
