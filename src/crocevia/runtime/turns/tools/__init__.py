"""What agents can use besides each other: built-in tools by name, and those of MCP servers."""

from crocevia.runtime.turns.tools.registry import BuiltIn, Outcome, Scene, Toolbox
from crocevia.runtime.turns.tools.standard import standard_tools

__all__ = ["BuiltIn", "Outcome", "Scene", "Toolbox", "standard_tools"]
