"""`POST /v1/chat/completions`: the older protocol of the same door."""

from crocevia.doors.responses.chat.completions import complete

__all__ = ["complete"]
