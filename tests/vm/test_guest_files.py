"""What a guest boots, made without apt: archives, the order of drivers, the file system."""

from __future__ import annotations

import io
import lzma
import os
import stat
from pathlib import Path

import pytest

from workbench.domain.errors import LabError
from workbench.labs.vm import cpio
from workbench.labs.vm.cpio import CpioWriter
from workbench.labs.vm.guest_files import in_order, modules_below, needs, write_file_system


def entries(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content by name, read as the kernel does (`newc`)."""
    found, at = {}, 0
    while True:
        assert data[at : at + 6] == b"070701"
        numbers = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        size, length = numbers[6], numbers[11]
        name = data[at + 110 : at + 110 + length - 1].decode()
        begin = at + 110 + length
        begin += -begin % 4
        if name == "TRAILER!!!":
            assert begin == len(data)
            return found
        assert name not in found
        found[name] = numbers[1], data[begin : begin + size]
        at = begin + size
        at += -at % 4


def tree(top: Path) -> Path:
    (top / "usr/bin").mkdir(parents=True)
    (top / "usr/share/doc/x").mkdir(parents=True)
    (top / "usr/bin/tool").write_bytes(b"#!odd")
    (top / "usr/bin/tool").chmod(0o755)
    (top / "usr/bin/other").symlink_to("tool")
    (top / "usr/share/doc/x/README").write_text("long")
    os.mkfifo(top / "usr/fifo")
    return top


def test_a_tree_is_archived_as_it_is_and_the_same_each_time(tmp_path: Path) -> None:
    tree(tmp_path)
    made = []
    for _ in range(2):
        out = io.BytesIO()
        with CpioWriter(out) as archive:
            archive.tree(tmp_path, frozenset({"usr/share/doc"}))
            archive.device("dev-console", 5, 1)
        made.append(out.getvalue())
    assert made[0] == made[1]
    found = entries(made[0])
    assert list(found) == ["usr", "usr/bin", "usr/bin/other", "usr/bin/tool", "usr/share",
                           "dev-console"]  # fmt: skip
    assert found["usr/bin/tool"] == (stat.S_IFREG | 0o755, b"#!odd")
    assert found["usr/bin/other"] == (stat.S_IFLNK | 0o777, b"tool")
    assert stat.S_ISCHR(found["dev-console"][0])


def test_an_archive_that_broke_off_has_no_end() -> None:
    out = io.BytesIO()

    def break_off() -> None:
        with CpioWriter(out) as archive:
            archive.file("half", b"x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()
    assert b"TRAILER" not in out.getvalue()


def test_a_file_beyond_the_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "big").write_bytes(b"12345")
    monkeypatch.setattr(cpio, "LARGEST_FILE", 4)
    with pytest.raises(LabError, match="too large for a guest"):
        CpioWriter(io.BytesIO()).tree(tmp_path)


def module(*needed: str) -> bytes:
    return b"\x7fELF\0license=GPL\0depends=" + ",".join(needed).encode() + b"\0name=x\0"


def test_drivers_come_after_what_they_need(tmp_path: Path) -> None:
    folder = tmp_path / "kernel/drivers"
    folder.mkdir(parents=True)
    (folder / "virtio_net.ko").write_bytes(module("virtio", "net_failover"))
    (folder / "net_failover.ko.xz").write_bytes(lzma.compress(module("failover")))
    (folder / "failover.ko").write_bytes(module())
    (folder / "virtio.ko").write_bytes(module("virtio_ring"))
    (folder / "virtio-ring.ko").write_bytes(module())
    there = modules_below(tmp_path)
    found = in_order(("virtio", "virtio_net"), there, "6.1")
    assert list(found) == ["virtio_ring", "virtio", "failover", "net_failover", "virtio_net"]
    assert found["net_failover"] == module("failover"), "unpacked, as busybox does not"
    with pytest.raises(LabError, match=r"6\.1 has no module e1000") as caught:
        in_order(("e1000",), there, "6.1")
    assert caught.value.remedy == "Choose another nic (--lab vm:nic=virtio)"


def test_what_a_module_needs() -> None:
    assert needs(module("one", "two-three")) == ["one", "two_three"]
    assert needs(module()) == []
    assert needs(b"\x7fELF without a word") == []


def test_a_file_system_has_what_an_init_needs(tmp_path: Path) -> None:
    out = io.BytesIO()
    with CpioWriter(out) as archive:
        write_file_system(archive, tree(tmp_path), {"virtio": b"A", "virtio_net": b"B"})
    found = entries(out.getvalue())
    assert found["init"][0] == stat.S_IFREG | 0o755
    assert found["init"][1].startswith(b"#!/usr/bin/busybox sh\n")
    assert found["lib"][1] == b"usr/lib"
    assert found["usr/lib/guest-drivers/order"][1] == b"virtio.ko\nvirtio_net.ko\n"
    assert found["usr/lib/guest-drivers/virtio_net.ko"][1] == b"B"
    assert "usr/share/doc" not in found
    assert b"nobody" in found["etc/passwd"][1]
    assert b"www-data" in found["etc/group"][1]
