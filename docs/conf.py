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
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_templates", "inventories"]

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
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {"numpy.ndarray": ":class:`numpy.ndarray`"}
numpydoc_xref_ignore = "all"  # other words of types
viewcode_line_numbers = True

# Links to other projects. The inventories in docs/inventories are lists of the names that docstrings use, in the text
# format 1 of Sphinx: the build reads nothing from the network. A further name needs a line there: name, kind, page.
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", "inventories/NumPy.txt"),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "inventories/SciPy.txt"),
    "sympy": ("https://docs.sympy.org/latest/", "inventories/SymPy.txt"),
}

# HTML
html_theme = "pydata_sphinx_theme"
html_title = f"kanegen {version}"
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
