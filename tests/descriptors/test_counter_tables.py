"""Tables of counters from outside: what is read, what is set aside, what is refused, and where."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from published_counters import co_located, experiment, experiments

from workbench.descriptors import counter_tables
from workbench.descriptors.co_located_files import is_co_located, read_co_located
from workbench.descriptors.counter_tables import read_counters
from workbench.domain.errors import UsageError
from workbench.models.counter_rows import without_idle_features


def test_each_file_is_an_experiment_and_idle_counters_are_named(tmp_path: Path) -> None:
    read = read_counters(experiments(tmp_path, 4))
    assert read.experiments == ("exp-0", "exp-1", "exp-2", "exp-3")
    assert (read.read, read.rows.group_count, read.notes) == (160, 4, ())
    useful, dropped = without_idle_features(read.rows)
    assert [(d.name, d.why) for d in dropped] == [
        ("bridge_cycles", "same as bridge_instructions"),
        ("bridge_mem-stores", "constant"),
    ]
    assert useful.x.shape == (160, 3)


def test_a_table_put_together_has_an_experiment_for_each_start_of_its_seconds(
    tmp_path: Path,
) -> None:
    one, two = (path.read_text().splitlines() for path in experiments(tmp_path, 2, 20))
    both = tmp_path / "global.csv"
    both.write_text("\n".join([*one, *two[1:]]), encoding="utf-8")
    read = read_counters([both])
    assert read.experiments == ("global", "global from line 22")
    assert np.bincount(read.rows.groups).tolist() == [20, 20]


def test_what_cannot_be_used_is_set_aside_with_its_line(tmp_path: Path) -> None:
    file = experiment(tmp_path / "a.csv", 1, 30)
    lines = file.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    cells[3][4] = "<not counted>"
    cells[5][5] = "12k"
    cells[7][4] = "-3"
    cells[9] = cells[9][:-2]
    cells[11][2] = "1e-160"
    cells[13][1:] = cells[12][1:]
    del cells[20]
    file.write_text("\n".join(",".join(line) for line in cells), encoding="utf-8")
    read = read_counters([file])
    assert (read.read, len(read.rows.y)) == (29, 23)
    said = "\n".join(read.notes)
    assert "1 gap in the seconds" in said
    assert "not counted (first at a.csv:4: bridge_instructions)" in said
    assert "2 rows set aside: a cell is no count or figure (first at a.csv:6:" in said
    assert "'12k'" in said
    assert "not 9 cells (first at a.csv:10)" in said
    assert "output_rate is 0" in said, "as good as: its share squared is no number"
    assert "repeats a row that was read before (first at a.csv:14)" in said


def test_the_column_of_seconds_is_found_by_its_usual_names(tmp_path: Path) -> None:
    one, two = (path.read_text().splitlines() for path in experiments(tmp_path, 2, 20))
    for heading in ("\ufeff", "Unnamed: 0", "Time", "timestamp"):
        both = tmp_path / "global.csv"
        both.write_text("\n".join([heading + one[0], *one[1:], *two[1:]]), encoding="utf-8")
        read = read_counters([both])
        assert read.experiments == ("global", "global from line 22"), heading
        assert all("bridge_" in name for name in read.rows.features), heading


def test_a_line_that_stands_twice_is_one_row_and_begins_no_experiment(tmp_path: Path) -> None:
    file = experiment(tmp_path / "a.csv", 1, 30)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:10], lines[9], *lines[10:]]), encoding="utf-8")
    read = read_counters([file])
    assert (read.experiments, len(read.rows.y)) == (("a",), 30)
    assert "1 row set aside: repeats a row that was read before" in read.notes[0]


def test_a_second_that_is_no_figure_hides_no_start(tmp_path: Path) -> None:
    one, two = (path.read_text().splitlines() for path in experiments(tmp_path, 2, 20))
    one[5] = "nan" + one[5][one[5].index(",") :]
    both = tmp_path / "both.csv"
    both.write_text("\n".join([*one, *two[1:]]), encoding="utf-8")
    assert len(read_counters([both]).experiments) == 2


def test_a_file_put_together_of_others_adds_no_copies(tmp_path: Path) -> None:
    files = experiments(tmp_path, 3, 20)
    lines = [file.read_text().splitlines() for file in files]
    whole = tmp_path / "global.csv"
    whole.write_text("\n".join([lines[0][0], *(row for one in lines for row in one[1:])]))
    read = read_counters([*files, whole])
    assert (len(read.rows.y), read.rows.group_count) == (60, 3)
    assert "global.csv has only rows that were read before" in read.notes


def test_the_kpi_that_is_asked_for_is_none_of_its_counters(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    rows = "".join(f"{n},{n + 1},{n % 7 + 1},{3 * n + 1}\n" for n in range(20))
    file.write_text(f",throughput_mbps,output_rate,bridge_cycles\n{rows}")
    assert read_counters([file], "throughput_mbps").rows.features == ("bridge_cycles",)
    named = tmp_path / "named.csv"
    named.write_text(file.read_text().replace(",throughput_mbps", "time,throughput_mbps", 1))
    with pytest.raises(UsageError, match="'time' counts the seconds of the run, and is no KPI"):
        read_counters([named], "time")


@pytest.mark.parametrize(
    ("times", "rows", "aside"),
    [(2.0, 8, False), (4.9, 8, False), (5.1, 8, True), (6.0, 3, True), (900.0, 2, False)],
)
def test_a_latency_that_stands_for_no_answer_is_set_aside(
    tmp_path: Path, times: float, rows: int, aside: bool
) -> None:
    """From three rows and five times the next one on: else it may be slow seconds that were
    measured, which is said where there are many."""
    file = experiment(tmp_path / "a.csv", 1, 40)
    cells = [line.split(",") for line in file.read_text().splitlines()]
    largest = times * max(float(row[3]) for row in cells[1 + rows :])
    for row in cells[1 : 1 + rows]:
        row[3] = repr(largest)
    file.write_text("\n".join(map(",".join, cells)), encoding="utf-8")
    read = read_counters([file], "latency")
    said = f"{rows} rows of 40 {'set aside' if aside else 'used'}"
    assert [said in note for note in read.notes] == [True] * (rows > 2)
    assert len(read.rows.y) == (40 - rows if aside else 40)
    assert (read.rows.y.max() == largest) is not aside
    assert len(read_counters([file], "output_rate").rows.y) == 40


def test_a_whole_number_again_and_again_among_fractions_is_no_measurement(tmp_path: Path) -> None:
    """As in `load_stimulus_exp-12.csv` of paper C: 15000.0 in most overloaded seconds, and one of
    5955.075 µs that was measured."""
    file = experiment(tmp_path / "a.csv", 1, 40)
    cells = [line.split(",") for line in file.read_text().splitlines()]
    for number, row in enumerate(cells[1:]):
        row[3] = "15000.0" if number < 12 else f"{20 + number}.{number:03}5"
    cells[30][3] = "5955.075"
    file.write_text("\n".join(map(",".join, cells)), encoding="utf-8")
    read = read_counters([file], "latency")
    assert read.rows.y.max() == 5955.075
    assert any("12 rows of 40 set aside" in note for note in read.notes)
    cells[1][3] = cells[2][3] = cells[3][3] = cells[4][3] = cells[5][3] = "15000.5"
    file.write_text("\n".join(map(",".join, cells)), encoding="utf-8")
    assert read_counters([file], "latency").rows.y.max() == 15000.5, "no whole number"


def test_rows_in_no_order_are_refused_and_a_second_out_of_order_begins_nothing(
    tmp_path: Path,
) -> None:
    file = experiment(tmp_path / "a.csv", 1, 40)
    head, *rows = file.read_text().splitlines()
    rows[10], rows[11] = rows[11], rows[10]
    file.write_text("\n".join([head, *rows]), encoding="utf-8")
    assert len(read_counters([file]).experiments) == 1
    file.write_text("\n".join([head, *(rows[17 * n % 40] for n in range(40))]), encoding="utf-8")
    with pytest.raises(UsageError, match="its seconds go back every"):
        read_counters([file])


def test_seconds_as_perf_writes_them_are_no_gaps(tmp_path: Path) -> None:
    file = experiment(tmp_path / "a.csv", 1, 40)
    head, *rows = file.read_text().splitlines()
    cells = [row.split(",") for row in rows]
    for number, row in enumerate(cells):
        row[0] = f"{1.0001 * (number + 1 + 5 * (number >= 20)):.6f}"
    file.write_text("\n".join([head, *map(",".join, cells)]), encoding="utf-8")
    assert any(note.startswith("1 gap in the seconds") for note in read_counters([file]).notes)


def test_the_largest_of_latencies_that_lie_close_is_a_measurement(tmp_path: Path) -> None:
    """Whole microseconds repeat to the last digit."""
    file = experiment(tmp_path / "a.csv", 1, 40)
    cells = [line.split(",") for line in file.read_text().splitlines()]
    for number, row in enumerate(cells[1:]):
        row[3] = str(100 + min(number, 30))
    file.write_text("\n".join(map(",".join, cells)), encoding="utf-8")
    assert read_counters([file], "latency").rows.y.max() == 130.0
    for row in cells[1:]:
        row[3] = "15000"
    file.write_text("\n".join(map(",".join, cells)), encoding="utf-8")
    with pytest.raises(UsageError, match="latency is 15000 in all 40 rows"):
        read_counters([file], "latency")


def test_a_file_that_is_refused_is_named_with_its_own_reason(tmp_path: Path) -> None:
    good, bad = experiments(tmp_path, 2, 30)
    lines = good.read_text().splitlines()
    lines[5:15] = [f"{line},1" for line in lines[5:15]]
    good.write_text("\n".join(lines), encoding="utf-8")
    cells = [line.split(",") for line in bad.read_text().splitlines()]
    for row in cells[1:]:
        row[4] = "<not counted>"
    bad.write_text("\n".join(map(",".join, cells)), encoding="utf-8")
    with pytest.raises(UsageError, match="most often an event was not counted") as refused:
        read_counters([good, bad])
    assert refused.value.where.startswith(f"{bad.name}:2")


def test_lines_and_experiments_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_tables, "MOST_EXPERIMENTS", 5)
    file = tmp_path / "back.csv"
    file.write_text(
        ",output_rate,bridge_cycles\n" + "".join(f"{n % 2},{n + 1},{n}\n" for n in range(20))
    )
    with pytest.raises(UsageError, match="more than 5 experiments"):
        read_counters([file])
    file.write_text("a" * counter_tables.LONGEST_LINE)
    with pytest.raises(UsageError, match="a line of over"):
        read_counters([file])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "0 columns"),
        ("a b c\n1 2 3\n", "1 columns"),
        (",output_rat,bridge_cycles\n0,1,2\n", "did you mean output_rat"),
        (",output_rate,bridge_cycles,bridge_cycles\n", "'bridge_cycles' stands there twice"),
        (",output_rate\n0,1\n", "no column of counters"),
        (",output_rate,bridge_cycles\n", "0 of 0 rows can be used"),
        (",output_rate,bridge_cycles\n0,1 Mbit,2\n1,2 Mbit,3\n", "0 of 2 rows"),
        (",output_rate,bridge_cycles\n0,1,1e300\n1,2,1_000\n", "0 of 2 rows"),
        (",output_rate,bridge_cycles\n0," + "9" * 400 + ",2\n", "no table of figures"),
        (b",output_rate,bridge_cycles\n0,\xff\xfe,1\n", "no table of figures"),
    ],
)
def test_what_is_no_table_of_counters_is_refused(
    tmp_path: Path, text: str | bytes, what: str
) -> None:
    file = tmp_path / "theirs.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as caught:
        read_counters([file])
    assert what in str(caught.value)
    assert "theirs.csv" in str(caught.value)
    assert caught.value.remedy


def test_another_unit_and_other_columns_are_said(tmp_path: Path) -> None:
    files = experiments(tmp_path, 3)
    lines = [line.split(",") for line in files[2].read_text().splitlines()]
    lines = [
        [*line[:3], line[3] + ("" if n == 0 else "e3"), *line[4:-1]] for n, line in enumerate(lines)
    ]
    files[2].write_text("\n".join(",".join(line) for line in lines), encoding="utf-8")
    read = read_counters(files, "latency")
    assert any("latency of exp-2.csv seems to be in another unit" in note for note in read.notes)
    assert any("left out: bridge_mem-stores" in note for note in read.notes)


def test_rows_in_memory_are_bounded_and_drawn_evenly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_tables, "MOST_KEPT", 500)
    monkeypatch.setattr(counter_tables, "MOST_REMEMBERED", 100)
    file = tmp_path / "long.csv"
    with file.open("w") as text:
        text.write(",output_rate,bridge_cycles\n")
        text.writelines(f"{n},{n + 1},{n * 3}\n" for n in range(60_000))
    tracemalloc.start()
    read = read_counters([file])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (read.read, len(read.rows.y)) == (60_000, 500)
    assert 27_000 < read.rows.y.mean() < 33_000
    assert most < 2**21, "memory does not grow with the file"


def test_rows_beside_competitors_are_told_apart_by_their_columns(tmp_path: Path) -> None:
    folder = co_located(tmp_path / "flowmon")
    files = sorted(folder.iterdir())
    assert all(map(is_co_located, files))
    profile, dropped, notes = read_co_located(files)
    assert (len(profile.one_traffic.y), len(profile.many_traffics.y)) == (41, 40)
    assert len(profile.unseen.y) == 24
    assert "pktsize" in {d.name for d in dropped}
    assert "1 row repeats another" in notes[0]
    assert profile.taught.group_count == 80, "the repeated row shares its group"


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("sample_test", "1 2 3\n", "3 columns"),
        ("sample_test", "1 2 x\n", "could not convert"),
        ("sample_yala_reg_train", "1 2\n3\n", "1 figures, where the lines before have 2"),
        ("sample_yala_reg_train", "1 2\n3 -1\n", "below 0"),
        ("sample_yala_reg_train", "1 2\n", "accelerator alone"),
        (
            "sample_yala_mem_train",
            "1 1518 1 1 1 1 1 1 1 5\n2 1518 1 1 1 1 1 1 1 4\n",
            "1 runs of competitors, where 4 are needed",
        ),
        (
            "sample_yala_mem_train",
            "1 1518 1 1 1 1 1 1 1 5\n",
            "2 files have training rows under one",
        ),
    ],
)
def test_a_part_that_is_wrong_is_located(tmp_path: Path, name: str, text: str, what: str) -> None:
    folder = co_located(tmp_path / "flowmon")
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=what) as caught:
        read_co_located(sorted(folder.iterdir()))
    assert name in str(caught.value)
