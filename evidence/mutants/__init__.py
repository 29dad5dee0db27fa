"""Mutation tests of the privacy core: `python -m evidence.mutants`."""
