"""Crocevia: a self-hosted agent gateway. Three agent protocols over any model."""

__version__ = "0.1.0.dev0"
