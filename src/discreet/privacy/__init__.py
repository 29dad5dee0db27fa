"""Budgets, events, accounting, noise, sensitivity and the gate: the only way out for what records say."""
