"""Suggested bounds: what is published of columns of which nothing was declared."""
