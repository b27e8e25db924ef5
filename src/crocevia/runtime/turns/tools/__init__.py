"""What agents can use besides each other: built-in tools by name, and those of MCP servers."""

from .registry import BuiltIn, Outcome, Scene, Toolbox
from .standard import standard_tools

__all__ = ["BuiltIn", "Outcome", "Scene", "Toolbox", "standard_tools"]
