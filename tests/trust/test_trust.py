# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of results is what the results say."""

from pathlib import Path

import pytest

import matrix
import trust

CASES = """\
<testcase classname="tests.{folder}.test_{name}" name="test_one{id}" time="1">{said}</testcase>
"""
TRIED = trust.Tried("loads", 30_000, 2, 61.4, "6.12.1", "2026-11-21 23:00", "abc1234")


def results(file: Path, *cases: str, when: str = "2026-01-01T00:00:00", failures: int = 0) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'<testsuites><testsuite name="pytest" errors="0" failures="{failures}"'
        f' timestamp="{when}">{"".join(cases)}</testsuite></testsuites>'
    )
    return file


def case(name: str, id: str = "", said: str = "", folder: str = "net") -> str:
    return CASES.format(folder=folder, name=name, id=id, said=said)


@pytest.mark.parametrize(
    ("suite", "test", "kernel"),
    [
        ("net", "test_x[rem]", "lab 6.12"),
        ("debug", "test_x", "lab 6.12 debug"),
        ("linux-7.2", "test_x[6.1]", "lab 7.2"),
        ("stock", "test_x[6.1-rem-counts]", "stock 6.1"),
        ("stock", "test_x[rem-counts-6.12]", "stock 6.12"),
        ("stock", "test_a_report_is_seen", None),
        ("tdc", "test_case[debug-a1b2 add it]", "lab 6.12 debug"),
        ("tdc", "test_case[7.2-a1b2 add it]", "lab 7.2"),
        ("unit", "test_x[6.1]", None),
    ],
)
def test_a_result_is_of_its_kernel(suite: str, test: str, kernel: str | None) -> None:
    assert matrix.kernel_of(suite, test) == kernel


def test_matrix_adds_up_the_last_results(tmp_path: Path) -> None:
    skipped, bad = "<skipped/>", '<failure message="no"/>'
    old = results(tmp_path / "old" / "net.xml", case("rem", said=bad), failures=1)
    new = results(
        tmp_path / "net.xml", case("rem"), case("rem", "[2]"), case("rem", said=skipped),
        case("xqm", said=bad), when="2026-02-01T00:00:00", failures=1,
    )  # fmt: skip
    stock = results(tmp_path / "stock.xml", case("stock", "[6.1-a]", folder="stock"))
    assert matrix.count([old, new, stock]) == [
        matrix.Cell("rem", "lab 6.12", passed=2, skipped=1),
        matrix.Cell("stock", "stock 6.1", passed=1),
        matrix.Cell("xqm", "lab 6.12", failed=1),
    ]


def test_tests_may_say_how_often_they_tried(tmp_path: Path) -> None:
    often = '<properties><property name="times" value="1000"/></properties>'
    file = results(tmp_path / "net.xml", case("loads", said=often), case("loads", "[2]"))
    assert trust.counted([file]) == (1001, 0)
    file = results(tmp_path / "net.xml", case("loads", said='<failure message="no"/>'), failures=1)
    assert trust.counted([file]) == (1, 1)


def test_no_results_are_a_failure(tmp_path: Path) -> None:
    assert trust.counted([]) == (0, 1)
    assert trust.counted([results(tmp_path / "net.xml")]) == (0, 1)


def test_page_keeps_the_rows_that_were_not_run() -> None:
    before = trust.write({"loads": trust.row("loads", TRIED), "fuzz": trust.row("fuzz", TRIED)})
    assert "| loads | loads | 30,000 | 2 | 1 min 1 s | 6.12.1 | 2026-11-21 23:00 | abc1234 |" in (
        before.splitlines()
    )
    again = trust.Tried("loads", 1, 0, 5, "6.12.2", "2026-11-22 01:00", "def5678")
    rows = trust.read(before) | {"loads": trust.row("loads", again)}
    assert trust.read(trust.write(rows)) == rows
    assert list(rows) == ["fuzz", "loads"]
    assert rows["fuzz"] == trust.row("fuzz", TRIED)
