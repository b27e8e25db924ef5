"""The helpers beside the tests, and the runner of the shared fixtures, can be imported from any folder."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3])]
