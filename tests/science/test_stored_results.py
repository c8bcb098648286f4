"""The tables of results: what is added, cut short, packed, replaced - and still comes out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from science import checking, playing, recordings, stored
from science.judging import Score
from science.playing import MET, Curve, Kept
from science.stored import Store

SCORE = Score(0.5, 0.4, 3.0, 0.1)
OTHER = Score(0.7, 0.4, 3.0, 0.1)


def kept(seed: int, count: int, most: int = 96, end: str = "budget") -> Kept:
    numbers = list(range(16, 16 + count))
    return Kept(seed, most, Curve(seed, numbers, [float(n) for n in numbers], [SCORE] * count, end))


def test_what_is_packed_is_what_was_added(tmp_path: Path) -> None:
    store = Store(tmp_path / "added", tmp_path / "kept")
    curve, reference = (
        "curves/one:a:p95_ms/sobol/lasso1/1.1.1",
        "references/one:a:p95_ms/lasso1/1.1",
    )
    lines = [kept(0, 3), kept(1, 2, end=MET)]
    for line in lines:
        store.add(curve, line)
    store.add(reference, SCORE)
    before = list(store.lines(curve, Kept))
    files = store.pack()
    assert [f.relative_to(tmp_path).as_posix() for f in files] == [
        "kept/references.parquet",
        "kept/curves.parquet",
    ]
    assert not list(tmp_path.rglob("*.jsonl"))
    assert list(store.lines(curve, Kept)) == before == lines
    assert list(store.lines(reference, Score)) == [SCORE]
    assert store.pack() == [], "nothing was added"


def test_a_line_that_was_cut_short_is_passed_over_and_harms_no_other(tmp_path: Path) -> None:
    store = Store(tmp_path / "added", tmp_path / "kept")
    name = "curves/one/sobol/lasso1/1"
    store.add(name, kept(0, 3))
    with store.path(name).open("ab") as file:
        file.write(b'{"seed":1,"most":96,"cur')
    store.add(name, kept(2, 3))
    assert [line.seed for line in store.lines(name, Kept)] == [0, 2]
    store.pack()
    assert [line.seed for line in store.lines(name, Kept)] == [0, 2]


def test_a_kill_while_files_are_written_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "added", tmp_path / "kept")
    name = "references/one/lasso1/1"
    store.add(name, SCORE)
    with monkeypatch.context() as killed:
        killed.setattr(stored.parquet, "write_table", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.pack()
    assert list(store.lines(name, Score)) == [SCORE]
    # Or after the file, before what was added is gone: it is there twice, and counts once.
    line = store.path(name).read_bytes()
    store.pack()
    store.path(name).write_bytes(line)
    store.pack()
    assert list(store.lines(name, Score)) == [SCORE]


def test_only_the_table_to_which_something_was_added_is_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "added", tmp_path / "kept")
    store.add("references/one/lasso1/1", SCORE)
    store.add("curves/one/sobol/lasso1/1", kept(0, 3))
    store.pack()
    other = tmp_path / "kept" / "curves.parquet"
    before = other.stat()
    store.add("references/two/lasso1/1", OTHER)
    assert [path.stem for path in store.pack()] == ["references"]
    assert (other.stat().st_ino, other.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list(store.lines("references/one/lasso1/1", Score)) == [SCORE], "another problem's stay"


def test_what_a_raised_version_makes_replaces_what_the_older_one_made(tmp_path: Path) -> None:
    store = Store(tmp_path / "added", tmp_path / "kept")
    store.add("references/one/lasso1/1", SCORE)
    store.add("references/one/svr/1", SCORE)
    store.pack()
    store.add("references/one/lasso1/2", OTHER)
    assert list(store.lines("references/one/lasso1/1", Score)) == [SCORE]
    store.pack()
    assert list(store.lines("references/one/lasso1/1", Score)) == []
    assert list(store.lines("references/one/lasso1/2", Score)) == [OTHER]
    assert list(store.lines("references/one/svr/1", Score)) == [SCORE]


def test_of_a_seed_the_curve_that_tells_most_is_packed(tmp_path: Path) -> None:
    store = Store(tmp_path / "added", tmp_path / "kept")
    name = "curves/one/sobol/lasso1/1"
    short, met, long, small = kept(0, 2), kept(0, 4, end=MET), kept(0, 4), kept(0, 5, most=48)
    for line in (short, met, long, small, kept(1, 2)):
        store.add(name, line)
    store.pack()
    assert list(store.lines(name, Kept)) == [long, small, kept(1, 2)]


def test_a_version_is_a_number_beside_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"a": SimpleNamespace(METHOD_VERSION=3), "b": SimpleNamespace()}
    monkeypatch.setattr(stored, "import_module", known.__getitem__)
    assert stored.version("a", "b") == "3-0"


def test_every_result_in_the_tree_is_of_a_present_version() -> None:
    """Of an older one nothing would be read: its tables would come out empty."""
    names = [s.name for s in playing.surfaces.SURFACES]
    names += [*recordings.names(), *recordings.twins()]
    surfaces = {name.partition(":")[0] for name in names}
    for table in stored.TABLES:
        kept_names = stored._packed(stored.KEPT / f"{table}.parquet")
        assert len(kept_names) > 100
        for name in kept_names:
            _, problem, *method, _ = name.split("/")
            assert problem.partition(":")[0] in surfaces
            now = (
                playing.key(problem, *method)
                if len(method) == 2
                else playing.reference_key(problem, *method)
            )
            assert name == now


PROBLEM = "science-open:haproxy:mean_ms"
MODELS = ("k-nearest", "interpolation", "lasso1", "curve-fit", "pooled", "random-forest")


@pytest.mark.parametrize("model", MODELS)
def test_models_still_err_as_stored(model: str) -> None:
    """Else `METHOD_VERSION` of a model is to be raised."""
    assert checking.same_reference(Store(), PROBLEM, model)


@pytest.mark.parametrize("sampler", playing.samplers())
def test_samplers_still_ask_as_stored(sampler: str) -> None:
    """Else `METHOD_VERSION` of a sampler is to be raised."""
    assert checking.same_beginning(Store(), PROBLEM, sampler, "interpolation") is not False
