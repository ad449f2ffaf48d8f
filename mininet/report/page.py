# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages from templates: one file, nothing fetched, no script."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .figures import dark_scheme, light_scheme
from .words import joined

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Drawing:
    """A figure as it stands in a page."""

    svg: str
    caption: str
    tall: bool = False  # as high as two others
    course: str = ""  # the same as JSON, for zoom.js


def render(template: str, **values: object) -> str:
    """The page TEMPLATE (a file beside this one) with style sheet and VALUES in their places."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["joined"] = joined
    style = light_scheme() + dark_scheme() + (HERE / "page.css").read_text()
    return environment.get_template(template).render(style=Markup(style), **values)
