"""Private conditional effects: point by point, as a function, and asked interactively."""
