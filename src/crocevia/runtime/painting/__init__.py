"""Pictures: one call of a provider, and the work on orders that nobody waits for."""
