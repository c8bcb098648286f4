"""The synthetic function lives with the tests of models; folders here are no packages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
