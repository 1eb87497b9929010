from __future__ import annotations

from reading.measures import Run
from reading.tables import markdown, rate, workload_table
from reading.workloads import Workload


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    table = markdown(("name", "n"), [("a", "1,000"), ("longer", "2")])

    assert table.splitlines() == [
        "| name   |     n |",
        "| ------ | ----: |",
        "| a      | 1,000 |",
        "| longer |     2 |",
    ]


def test_a_rate_is_the_median_of_its_rounds() -> None:
    assert rate([Run(1.0, 100), Run(4.0, 100), Run(2.0, 100)]) == 50.0


def test_a_rate_counts_the_records_that_were_read() -> None:
    assert rate([Run(2.0, 10)]) == 5.0


def test_medians_and_the_spread_beside_them() -> None:
    runs: dict[str, list[Run] | str] = {"ours": [Run(1.0, 4000), Run(2.0, 4000), Run(4.0, 4000)]}

    row = workload_table(Workload(4000, 10_000, "zstd"), runs).splitlines()[-1]

    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "ours",
        "2,000",
        "20",
        "2.00",
        "1.00 to 4.00",
    ]


def test_what_was_not_measured_says_why() -> None:
    table = workload_table(Workload(4000, 100, "none"), {"kcat": "not installed"})

    assert "not installed" in table.splitlines()[-1]


def test_what_reads_nothing_has_no_rate() -> None:
    row = workload_table(Workload(4000, 100, "none"), {"planning": [Run(0.25, 0)]}).splitlines()[-1]

    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "planning",
        "",
        "",
        "0.25",
        "0.25 to 0.25",
    ]
