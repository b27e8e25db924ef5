"""What agents can use besides each other: built-in tools by name, and those of MCP servers."""

from crocevia.runtime.turns.tools.registry import PlatformTool, Toolbox, ToolContext, ToolReturn
from crocevia.runtime.turns.tools.standard import standard_tools

__all__ = ["PlatformTool", "ToolContext", "ToolReturn", "Toolbox", "standard_tools"]
