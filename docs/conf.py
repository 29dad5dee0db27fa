"""Sphinx settings; build with ``make docs``."""

import discreet

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
