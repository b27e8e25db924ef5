"""Envai's API and the Agent Team Protocol. Its words live here and nowhere else."""
