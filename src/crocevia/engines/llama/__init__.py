"""Models that run in a child process of this server, on llama.cpp."""
