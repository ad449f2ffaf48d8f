# SPDX-License-Identifier: GPL-2.0-or-later
"""Our modules built for Debian's kernels, and tc's plug-ins: once for all tests of this folder."""

from pathlib import Path

import pytest

import kernels
import modules
from modules import BUILD, Built


@pytest.fixture(scope="session", params=kernels.SERIES)
def built(request: pytest.FixtureRequest) -> Built:
    return Built(request.param)


@pytest.fixture(scope="session")
def plugins() -> Path:
    folder = BUILD / "plugins"
    modules.make("plugins", f"OUT={folder}")
    return folder
