"""A model call becomes one upstream request; its stream becomes model events."""
