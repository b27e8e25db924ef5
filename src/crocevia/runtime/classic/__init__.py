"""The classic API's own work, made of ordinary calls.

service.py        `Classic`, what the door sees: a recipe, rounds of search, an answer
conversations.py  what is remembered between calls;  citations.py: where an answer is in its documents
websearch.py      the search backend as a tool
"""

from crocevia.runtime.classic.citations import Citation
from crocevia.runtime.classic.service import Classic, ClassicAnswer, Question, Reply

__all__ = ["Citation", "Classic", "ClassicAnswer", "Question", "Reply"]
