"""What a command line on this interface needs: outputs, limits and signals."""

from elbowroom.files import check_output as check_output
from elbowroom.files import is_stdout as is_stdout
from elbowroom.files import try_output as try_output
from elbowroom.measure.progress import Progress as Progress
from elbowroom.quantities import MOST_REPETITIONS as MOST_REPETITIONS
from elbowroom.signals import ends_as_interrupt as ends_as_interrupt
