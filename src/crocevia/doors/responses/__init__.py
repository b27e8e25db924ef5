"""The OpenAI-like surface: `/v1/responses`, chat completions, embeddings and models."""

from .door import ResponsesDoor
from .plan import Desk
from .targets import Targets

__all__ = ["Desk", "ResponsesDoor", "Targets"]
