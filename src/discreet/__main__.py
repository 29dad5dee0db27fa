"""``python -m discreet`` is the command line too."""

from discreet.cli import app

app(prog_name="discreet")
