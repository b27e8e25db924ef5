"""OpenAI's APIs and everything compatible with them: chat completions, responses, embeddings, images."""
