"""Configuration of the documentation. Build it with ``make docs``; no network access is needed."""

import sys
from pathlib import Path

import locb

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "locb"
author = "The locb authors"
copyright = author
release = version = locb.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "locb_docs",
]
exclude_patterns = ["_build", "_ext", "_templates", "results/**"]
if tags.has("nogallery"):  # noqa: F821 - provided by Sphinx; set by tests/test_reference.py
    exclude_patterns.append("gallery")
else:
    extensions.append("sphinx_gallery.gen_gallery")

templates_path = ["_templates"]
nitpicky = False
toc_object_entries = False

myst_enable_extensions = ["colon_fence", "deflist", "html_image", "tasklist"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # types are in the numpydoc sections
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"greedy\.py$",
    "within_subsection_order": "locb_docs.gallery.example_order",
    "image_scrapers": ("locb_docs.gallery.scrape_charts",),
    "reset_modules": (),
    "capture_repr": ("_repr_html_",),
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 0,
    "abort_on_example_error": False,
    "thumbnail_size": (400, 280),
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "locb"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "locb"},
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
    "primary_sidebar_end": [],
}
