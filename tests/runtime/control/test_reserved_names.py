from pathlib import Path

from crocevia.runtime.control.tools import RESERVED
from crocevia.runtime.turns.tools.standard import standard_tools
from crocevia.runtime.workspace_files import WorkspaceFiles


def test_no_client_tool_can_take_the_name_of_a_built_in_one(tmp_path: Path) -> None:
    assert {built_in.tool.name for built_in in standard_tools(WorkspaceFiles(tmp_path))} <= RESERVED
