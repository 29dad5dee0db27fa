"""Tables and figures of one paper, computed anew."""
