"""Who may change what a ledger allows: proposals that another curator approves, notes, and a halt of everything."""
