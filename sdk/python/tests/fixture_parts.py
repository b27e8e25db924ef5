"""The builders of the shared fixtures, for tests that need events of their own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from fixtures.parts import CHAT, TURN, capabilities, ping, terminal
from fixtures.tool_cases import SCHEMA, TOOL, head, jwks, request, result

__all__ = ["CHAT", "SCHEMA", "TOOL", "TURN", "capabilities", "head", "jwks", "ping", "request", "result", "terminal"]
