"""Drive calls and turns: models, tools, teams, approvals, recovery."""
