"""Envai's words on the wire: one module per resource, structs only."""
