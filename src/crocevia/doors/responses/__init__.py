"""The OpenAI-like surface: `/v1/responses`, chat completions, embeddings and models."""
