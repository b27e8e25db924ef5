"""The helpers beside the tests are imported by name, whatever folder pytest starts from."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
