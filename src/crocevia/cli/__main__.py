"""`python -m crocevia.cli`."""

from . import main

main(prog_name="crocevia")
