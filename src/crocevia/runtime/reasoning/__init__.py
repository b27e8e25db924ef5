"""Reasoning that travels: whose blocks go back to an engine, and who answers when they are missing."""
