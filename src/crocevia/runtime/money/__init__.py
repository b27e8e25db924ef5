"""What calls may cost and did cost: prices, budgets, the day's ledger and who is told of it."""
