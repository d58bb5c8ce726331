"""Sphinx's settings for the web site; book.py puts together what it reads."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import book  # noqa: E402
import mathematics  # noqa: E402

URL = book.stamp.address(book.ROOT)

project = "Attention, annotated"
author = "The annotated-attention authors"
copyright = author
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
smartquotes = False  # "..." in shapes stays three dots
html_use_index = html_domain_indices = False  # the search does it

nb_execution_mode = "off"  # outputs are those of the repository
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables in outputs
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3

strip_signature_backslash = True  # napoleon writes one before each _ of an attribute
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "none"
autodoc_preserve_defaults = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "repository_url": URL,
    "repository_branch": "main",
    "repository_provider": "github",
    "path_to_docs": "",
    "use_repository_button": True,
    "use_download_button": True,
    "launch_buttons": {"colab_url": "https://colab.research.google.com"},
    "home_page_in_toc": True,
    "show_toc_level": 2,
    "footer_content_items": ["copyright.html"],
}


def read_source(app, docname, source):
    """A notebook as its page needs it; the file itself, which the download button gives, stays as
    it is."""
    if docname.startswith("notebooks/"):
        source[0] = book.notebook_for_site(
            source[0], Path(docname).name, Path(docname).parent.as_posix(), URL
        )


def read_docstring(app, what, name, thing, options, lines):
    lines[:] = book.rst(lines)


def setup(app):
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", read_docstring)
    mathematics.setup(app)
