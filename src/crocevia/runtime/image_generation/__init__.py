"""Image generation: single provider calls, and the background jobs built on them."""
