"""Settings of the documentation's generator: Markdown pages, and the reference taken from the docstrings."""

from importlib.metadata import version as installed_version
from itertools import pairwise

from sphinx.application import Sphinx

project = "Tenure"
author = "Tenure contributors"
copyright = "2026, Tenure contributors"  # noqa: A001 -- the generator asks for this name
release = installed_version("tenure")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]

# Pages: fences with colons, and a link target at every heading down to the third level.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Reference: in the order of the source, types in the signature; `Name` in a docstring links where it can.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_display_short_literal_types = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"Tenure {release}"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def keep_indented_blocks(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Show indented blocks of a docstring as they are written: they hold code and drawings."""
    shown: list[str] = []
    inside = False
    for before, line in pairwise(["", *lines]):
        indented = line.startswith("    ")
        if indented and not inside and not before.strip():
            shown += ["::", ""]
        if line.strip():
            inside = indented
        shown.append(line)
    lines[:] = shown


def setup(app: Sphinx) -> None:
    """Connect what this page adds to the generator."""
    app.connect("autodoc-process-docstring", keep_indented_blocks)
