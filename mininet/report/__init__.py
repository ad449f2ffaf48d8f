# SPDX-License-Identifier: GPL-2.0-or-later
"""From finished runs to figures, tables and a page that opens from disk without a network."""
