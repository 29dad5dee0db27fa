"""Why mutants that survive do no harm, one sentence each.

The key is the module, the function and the change, as the page prints it: line numbers may move, and a changed line
needs its reason anew.
"""

REASONS: dict[tuple[str, str, str], str] = {}
