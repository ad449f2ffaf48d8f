# SPDX-License-Identifier: GPL-2.0-or-later
"""How command lines are read and refused; nothing here needs Mininet."""

import argparse
from collections.abc import Callable
from typing import NoReturn, TypeVar

USAGE = 2  # exit status
Value = TypeVar("Value")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage lines."""

    def __init__(self, description: str | None) -> None:
        super().__init__(description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}.\n")


def checked(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """PARSE for argparse: its ValueError's words become the message."""

    def convert(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as wrong:
            raise argparse.ArgumentTypeError(str(wrong)) from None

    return convert


def whole(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers from LOW to HIGH."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return checked(parse)
