# SPDX-License-Identifier: GPL-2.0-or-later
"""On which of the lab's kernels the cases are run: --on, once or more."""

import pytest

from lablib import DEFAULT_KERNEL, KERNELS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on", action="append", choices=[*KERNELS, "debug"], help="6.12 if not given")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kernels = metafunc.config.getoption("on") or [DEFAULT_KERNEL]
    metafunc.parametrize("kernel", kernels, scope="session")
