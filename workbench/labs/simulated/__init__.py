"""The simulated lab: requests and quota periods, virtual time, the same records as Docker's.

See docs/simulated-lab.md for what is modelled, its parameters and where their figures come from.
"""

from workbench.labs.simulated.lab import SimulatedLab
from workbench.labs.simulated.options import SimulationOptions

__all__ = ["SimulatedLab", "SimulationOptions"]
