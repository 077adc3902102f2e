"""The configuration of the documentation site; ``make docs`` builds it in build/site, and warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

import kanegen

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

project = "kanegen"
author = "The kanegen developers"
copyright = f"2026, {author}"
version = release = kanegen.__version__

extensions = [
    "gallery",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_templates"]

# Markdown: headings have the anchors that forges give them, because the pages are read there, too.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# Python: reference.rst lists the names; docstrings give types with shapes and units, so that signatures need none.
default_role = "py:obj"
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# HTML
html_theme = "pydata_sphinx_theme"
html_title = "kanegen"
html_static_path = ["_static"]
html_css_files = ["kanegen.css"]
motions = HERE.parent / "build" / "gallery"
motions.mkdir(parents=True, exist_ok=True)  # Sphinx looks for it before gallery.py fills it
html_extra_path = [str(motions)]
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
