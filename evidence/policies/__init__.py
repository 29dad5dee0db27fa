"""What policies gain at a small budget, and how often their lower bounds hold."""
