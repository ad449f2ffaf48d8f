# SPDX-License-Identifier: GPL-2.0-or-later
"""Sphinx: the documentation as a site. The pages are the repository's own Markdown files."""

project = "aqmkit"
author = project_copyright = "The aqmkit authors"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "docs/*.md", "*/README.md", "*/*/README.md"]
exclude_patterns = [".*", "build", "out"]
# Files and folders that are no pages: tests/docs looks whether they are there.
suppress_warnings = ["myst.xref_missing"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {
    "description": "Fair, low-delay networks",
    "fixed_sidebar": True,
    "page_width": "64rem",
}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_show_copyright = html_show_sourcelink = False
