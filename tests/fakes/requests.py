"""Model requests in one line."""

from __future__ import annotations

from typing import Any

from crocevia.core.calls import Effort, GenerationOptions, ModelRequest, Reasoning
from crocevia.core.messages import user


def model_request(*, effort: Effort | None = None, **fields: Any) -> ModelRequest:
    """A request whose generation options stand beside its other fields; without messages, somebody says «hi»."""
    options = {name: fields.pop(name) for name in _OPTIONS & fields.keys()}
    if effort is not None:
        options["reasoning"] = Reasoning(effort=effort)
    return ModelRequest(**{"model": "m", "messages": (user("hi"),), **fields}, options=GenerationOptions(**options))


_OPTIONS = frozenset(GenerationOptions.__struct_fields__) - {"reasoning"}
