"""What the tests themselves promise: costs by file, needs of the host, commands that are forked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import file_costs
import host_needs
import pytest
from driving import COMMAND, Workbench
from file_costs import MOST_S, SLOWNESS_S, FileCosts, tree_cpu_s
from rewriting import rewrite_a_share
from spreading import ByRoom, put_whole_ways_first, shares

from workbench.domain.errors import LabError

BURN = "import time\nwhile time.process_time() < 0.3: pass"


def told(costs: FileCosts, *reports: tuple[str, float]) -> pytest.ExitCode:
    """How a run ends in which these tests cost that."""
    for nodeid, cpu_s in reports:
        costs.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, cpu_s=cpu_s, when="teardown"))  # type: ignore[arg-type]
    session: Any = SimpleNamespace(config=SimpleNamespace(), exitstatus=pytest.ExitCode.OK)
    costs.pytest_sessionfinish(session)
    status: pytest.ExitCode = session.exitstatus
    return status


@pytest.fixture(autouse=True)
def usual_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_costs, "slowness_s", lambda: SLOWNESS_S)


def test_a_file_that_costs_too_much_fails_the_run_wherever_its_tests_ran() -> None:
    half = 0.6 * MOST_S
    reports = (("a.py::test_1", half), ("b.py::test_1", half), ("a.py::test_2[x::y]", half))
    costs = FileCosts(limited=True)
    assert told(costs, *reports) == pytest.ExitCode.TESTS_FAILED
    assert costs.too_costly == ["a.py"]
    assert told(FileCosts(limited=True), *reports[:2]) == pytest.ExitCode.OK
    assert told(FileCosts(limited=False), *reports) == pytest.ExitCode.OK, "`make accept`"


def test_on_a_slow_host_a_file_may_cost_its_share_of_the_whole_run() -> None:
    slow = 10.0
    others = (f"{name}.py::test_1" for name in range(40))
    reports = [(test, slow * 0.9 * MOST_S) for test in others]
    assert told(FileCosts(limited=True), *reports) == pytest.ExitCode.OK
    costly = ("costly.py::test_1", slow * 2.0 * MOST_S)
    assert told(FileCosts(limited=True), *reports, costly) == pytest.ExitCode.TESTS_FAILED


def test_it_is_asked_once_a_test_what_that_has_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the workers started is looked at for that: twice cost seconds of a whole run."""
    looks = iter((1.0, 3.0, 8.0))
    monkeypatch.setattr(file_costs, "tree_cpu_s", lambda: next(looks))
    costs = FileCosts(limited=True)
    ended: Any = SimpleNamespace(when="teardown")
    told_s: list[float] = []
    for _ in range(2):
        next(costs.pytest_runtest_setup())
        making = costs.pytest_runtest_makereport(ended)
        next(making)
        with pytest.raises(StopIteration) as made:
            making.send(SimpleNamespace())  # type: ignore[attr-defined]
        told_s.append(made.value.value.cpu_s)
    assert told_s == [2.0, 5.0]


def test_where_all_work_takes_longer_a_file_may_cost_as_much_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A virtual machine whose neighbours were busy failed files that cost 38 s, elsewhere 15."""
    reports = [("a.py::test_1", 1.5 * MOST_S)]
    monkeypatch.setattr(file_costs, "slowness_s", lambda: 2.0 * SLOWNESS_S)
    slow = FileCosts(limited=True)
    assert told(slow, *reports) == pytest.ExitCode.OK
    assert slow.slowness == 2.0
    assert told(FileCosts(limited=True), ("a.py::test_1", 2.5 * MOST_S)) == (
        pytest.ExitCode.TESTS_FAILED
    )
    monkeypatch.setattr(file_costs, "slowness_s", lambda: 0.5 * SLOWNESS_S)
    fast = FileCosts(limited=True)
    assert told(fast, *reports) == pytest.ExitCode.TESTS_FAILED
    assert fast.slowness == 1.0, "a fast host does not make the limit narrower"


def test_what_a_test_starts_is_counted_living_and_dead() -> None:
    before = tree_cpu_s()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert tree_cpu_s() - before > 0.25
    waiting = f"{BURN}\nprint('burned', flush=True)\ninput()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    before = tree_cpu_s()
    with subprocess.Popen([sys.executable, "-c", waiting], text=True, **pipes) as living:
        assert living.stdout is not None
        living.stdout.readline()
        assert tree_cpu_s() - before > 0.25
        living.kill()


def test_what_is_missing_is_skipped_with_its_package_or_fails_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(host_needs.VARIABLE, "docker, sftp")
    with pytest.raises(pytest.skip.Exception, match=r"needs sshd .*openssh-server"):
        host_needs.missing("sshd", "sshd")
    with pytest.raises(pytest.fail.Exception, match=r"needs sftp .*openssh-client"):
        host_needs.missing("sftp", "sftp")
    monkeypatch.setenv(host_needs.VARIABLE, "all")
    with pytest.raises(pytest.fail.Exception, match="needs sshd"):
        host_needs.missing("sshd", "sshd")
    monkeypatch.delenv(host_needs.VARIABLE)
    host_needs.no_base_image(LabError("the engine has no disk left"))
    with pytest.raises(pytest.skip.Exception, match=r"needs a base image: .* made here"):
        host_needs.no_base_image(LabError("the base image x can not be made here"))
    monkeypatch.setenv(host_needs.VARIABLE, "dokker")
    with pytest.raises(pytest.UsageError, match=r"names dokker; known are all, .*docker"):
        host_needs.required()


def test_no_test_skips_by_itself_what_a_package_brings() -> None:
    """`host_needs` fails it where nothing may be skipped; a clock that jumps was skipped in CI."""
    own = Path(host_needs.__file__)
    by_itself = re.compile(r"pytest\.skip\([^)]*package")
    tests = (path for path in own.parent.rglob("*.py") if path not in (own, Path(__file__)))
    assert not [path.name for path in tests if by_itself.search(path.read_text())]


def test_a_test_needs_what_its_marks_name(request: pytest.FixtureRequest) -> None:
    request.node.add_marker(pytest.mark.docker)
    request.node.add_marker(pytest.mark.needs("ssh", "no-such-program"))
    assert host_needs.needs_of(request.node) == ["docker", "ssh", "no-such-program"]
    assert not host_needs.is_there("no-such-program")
    assert host_needs.is_there("sh")


@pytest.mark.parametrize("words", ["--version", "ls", "show nothing", "lint none.yaml", "ls --no"])
def test_a_forked_command_is_the_installed_one(workbench: Workbench, words: str) -> None:
    installed = subprocess.run(
        [COMMAND, *words.split()],
        env=workbench.environment,
        cwd=workbench.root,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    forked = workbench.run(*words.split(), expect=installed.returncode)
    assert (forked.stdout, forked.stderr) == (installed.stdout, installed.stderr)


def test_files_whose_tests_share_something_stay_with_one_worker() -> None:
    scope = ByRoom._split_scope
    first, second = (f"tests/engine/test_a.py::test_{n}[x/y.py::z]" for n in (1, 2))
    assert scope(None, first) == scope(None, second) == "tests/engine/test_a.py"  # type: ignore[arg-type]
    first, second = (f"tests/models/test_a.py::test_{n}" for n in (1, 2))
    assert (scope(None, first), scope(None, second)) == (first, second)  # type: ignore[arg-type]


def test_files_whose_fixtures_are_of_the_module_stay_whole_wherever_they_are() -> None:
    assert shares("tests/models/test_counter_watch.py")
    assert shares("tests/engine/test_of_no_such_name.py")
    assert not shares("tests/models/test_regressors.py")


def test_what_waits_for_a_minute_begins_first_and_single_tests_last() -> None:
    names = (
        "chains/test_0.py::test_0",
        "cli/test_a.py::test_1",
        "tui/test_tui_whole_way.py::test_2",
        "web/test_b.py::test_3",
        "tui/test_tui_monkey.py::test_4",
        "truth/test_seconds.py::test_5",
    )
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    put_whole_ways_first(items)
    assert [item.nodeid for item in items] == [names[i] for i in (2, 4, 5, 1, 3, 0)]


def test_units_that_are_done_are_not_counted_again() -> None:
    scheduler: Any = object.__new__(ByRoom)
    scheduler.log = lambda *_: None
    node: Any = type("Node", (), {"shutting_down": False})()
    pending = {f"b.py::test_{n}": False for n in range(3)}
    scheduler.assigned_work = {node: {"a.py": {"a.py::test_0": True}, "b.py": pending}}
    scheduler.workqueue = {"c.py": {"c.py::test_0": False}}
    scheduler._reschedule(node)
    assert scheduler.assigned_work == {node: {"b.py": pending}}
    assert scheduler.workqueue, "it has enough to do"


def test_each_worker_rewrites_a_share_of_the_files(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text(f"assert {'1 + ' * number}1\n")
    (tmp_path / "test_broken.py").write_text("assert (")

    def kept(worker: str) -> list[str]:
        config: Any = SimpleNamespace(
            workerinput={"workerid": worker, "workercount": 2},
            args=[str(tmp_path)],
            invocation_params=SimpleNamespace(dir=tmp_path),
            stash=pytestconfig.stash,
            getini=pytestconfig.getini,
        )
        rewrite_a_share(config)
        return sorted(path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc"))

    assert kept("gw0") == ["test_1", "test_3"]
    assert kept("gw1") == ["test_0", "test_1", "test_2", "test_3"]
