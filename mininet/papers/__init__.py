# SPDX-License-Identifier: GPL-2.0-or-later
"""The five papers' figures as data, and what is done with them: planned, run, judged."""
