"""Several arms: which design they have, the scores of all arms together, and what is published of them."""
