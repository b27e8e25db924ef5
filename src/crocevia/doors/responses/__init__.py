"""The OpenAI-like surface: `/v1/responses`, chat completions, embeddings and models."""

from crocevia.doors.responses.door import ResponsesDoor
from crocevia.doors.responses.plan import Desk
from crocevia.doors.responses.targets import Targets

__all__ = ["Desk", "ResponsesDoor", "Targets"]
