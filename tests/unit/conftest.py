# SPDX-License-Identifier: GPL-2.0-or-later
"""The same examples every time, however slow the machine; nothing kept between runs."""

from hypothesis import settings

settings.register_profile("aqmkit", deadline=None, derandomize=True, database=None)
settings.load_profile("aqmkit")
