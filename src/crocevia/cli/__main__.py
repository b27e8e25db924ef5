"""`python -m crocevia.cli`."""

from crocevia.cli import main

main(prog_name="crocevia")
