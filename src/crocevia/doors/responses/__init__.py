"""The OpenAI-like surface: `/v1/responses`, chat completions, embeddings and models."""

from crocevia.doors.responses.door import responses_door
from crocevia.doors.responses.run import Background
from crocevia.doors.responses.services import Services
from crocevia.doors.responses.targets import Targets

__all__ = ["Background", "Services", "Targets", "responses_door"]
