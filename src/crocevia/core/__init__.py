"""What messages, tools, events, usage and turns are. Values and pure functions: stdlib and msgspec only."""
