"""Reasoning that travels: whose pieces go back to an engine, and who answers when they are missing."""
