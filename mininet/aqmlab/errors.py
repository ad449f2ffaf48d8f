# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user is told in one sentence instead of a traceback."""


class ExperimentError(Exception):
    """The experiment cannot be done; the text says why and what to do."""


class RefusedError(ExperimentError):
    """The kernel or tc refused what the user asked for: the text is theirs."""
