"""Who burns the host's CPU, from folders that look like `/proc`."""

from pathlib import Path

from workbench.probes import burners
from workbench.probes.burners import Burner, Burning

ID = "251558979b23616d671da1bf32b5e230f137c5a6bded988c57be255eed81cfd5"


def test_groups_are_called_as_people_call_them() -> None:
    assert burners.parse_group(f"2:cpu:/docker/{ID}\n0::/\n") == "container 251558979b23"
    assert burners.parse_group(f"0::/system.slice/docker-{ID}.scope\n") == "container 251558979b23"
    assert burners.parse_group("0::/system.slice/cron.service\n") == "cron.service"
    assert burners.parse_group("4:memory:/api/9b7e\n0::/user.slice/session-1.scope\n") == ""


def test_a_process_whose_name_holds_spaces_and_parentheses() -> None:
    fields = "S 7 " + " ".join(["0"] * 9) + " 300 200 0 0 20 0 1 0 99999 0"
    assert burners.parse_stat(f"41 (a (b) c) {fields}") == ("a (b) c", 7, 99999, 5.0)


def put(proc: Path, pid: int, name: str, parent: int, group: str) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    fields = f"S {parent} " + " ".join(["0"] * 9) + " 100 0 0 0 20 0 1 0 5 0"
    (folder / "stat").write_text(f"{pid} ({name}) {fields}")
    (folder / "cgroup").write_text(f"0::{group}\n")


def test_one_pass_leaves_out_ourselves_and_who_has_ended(tmp_path: Path) -> None:
    import os

    put(tmp_path, 900001, "rustc", 1, f"/docker/{ID}")
    put(tmp_path, 900002, "worker", os.getpid(), "/")
    put(tmp_path, os.getpid(), "engine", 1, "/")
    (tmp_path / "900003").mkdir()  # it has ended: its files are gone
    (tmp_path / "self").mkdir()
    others, own_s = burners.read(tmp_path)
    assert own_s >= 2.0, "a worker and ourselves"
    assert others == {(900001, 5): Burning("rustc", "container 251558979b23", 1.0)}


def test_the_busiest_by_group_and_processes_of_none_by_themselves() -> None:
    def burned(*cpu_s: float) -> dict[tuple[int, int], Burning]:
        names = (("rustc", "container 1"), ("cc1", "container 1"), ("python3", ""), ("sshd", ""))
        return {
            (pid, 0): Burning(name, group, seconds)
            for pid, ((name, group), seconds) in enumerate(zip(names, cpu_s, strict=True), 10)
        }

    found = burners.busiest(burned(5, 5, 5, 5), burned(7, 8, 6, 5.01), 2.0)
    assert found == (Burner("container 1 (cc1)", 2.5), Burner("python3 (process 12)", 0.5))
    assert str(found[0]) == "container 1 (cc1) 2.5 cores"
    again = {(10, 1): Burning("rustc", "container 1", 1.0)}
    assert burners.busiest(burned(5, 5, 5, 5), again, 2.0) == (
        Burner("container 1 (rustc)", 0.5),
    ), "an id that is used again is another process"


def test_this_host_can_be_read() -> None:
    before, own_s = burners.read()
    assert before
    assert own_s > 0.0
    assert all(burner.cores > 0 for burner in burners.busiest(before, burners.read()[0], 0.01))
