"""The helpers beside the tests, and the runner of the shared fixtures, can be imported from any folder."""

import sys
from pathlib import Path

from hypothesis import settings

settings.register_profile("suite", deadline=None)  # how busy the machine is says nothing about the product
settings.load_profile("suite")

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3])]
