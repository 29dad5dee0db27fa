"""Meta-learners of conditional effects from private base learners."""
