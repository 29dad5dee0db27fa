"""What notebooks show of declared facts, budgets and plans."""
