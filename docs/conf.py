"""Sphinx settings; build with ``make docs``."""

import sys
from pathlib import Path
from typing import Any

import discreet

sys.path.insert(0, str(Path(__file__).parent / "developers"))

project = "discreet"
author = "The discreet authors"
project_copyright = author
version = release = discreet.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_custom_sections = [("Privacy", "notes_style")]

html_theme = "furo"
html_title = f"discreet {release}"
# For language models: https://llmstxt.org
html_extra_path = ["llms.txt"]


def _offer_notebook(app: Any, name: str, source: list[str]) -> None:
    """A link to the notebook below each tutorial that is one."""
    if name.startswith("tutorials/") and "```python" in source[0]:
        link = f"<p><a href='{name.partition('/')[2]}.ipynb' download>This page as a notebook</a></p>"
        source[0] += f"\n\n```{{raw}} html\n{link}\n```\n"


def _write_notebooks(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        from run_tutorials import write_notebooks

        write_notebooks(Path(app.outdir) / "tutorials")


def setup(app: Any) -> None:
    """Tutorials come as notebooks, too."""
    app.connect("source-read", _offer_notebook)
    app.connect("build-finished", _write_notebooks)
