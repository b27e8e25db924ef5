"""Drive calls and turns: models, tools, teams, approvals, recovery. ARCHITECTURE.md says which room holds what."""
