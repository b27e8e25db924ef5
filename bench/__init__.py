"""The load tools: a mock upstream, a load generator, and what runs servers beside nginx and measures their CPU."""
