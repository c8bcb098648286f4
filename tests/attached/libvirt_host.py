"""A libvirtd of the tests' own, and a domain of it: real ones, emulated (TCG).

libvirtd has its folders in a mount namespace, so that it knows nothing of the host's own domains
and leaves nothing in `/etc` or `/var`; its control groups lie beside theirs. The domain boots 512
bytes that do nothing but use a core, and serve nobody: where load is needed, a process of the host
answers in its place.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.probes import cgroup
from workbench.probes.process import PROC

START = r"""
set -eu
mount --make-rprivate /
for folder in /run/libvirt /var/lib/libvirt /etc/libvirt /var/cache/libvirt; do
  mkdir -p "$folder"
  mount -t tmpfs tmpfs "$folder"
done
mkdir -p /etc/libvirt/qemu
cat >/etc/libvirt/qemu.conf <<X
user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
X
cat >/etc/libvirt/libvirtd.conf <<X
unix_sock_dir = "$1"
auth_unix_rw = "none"
log_outputs = "3:file:$1/log"
X
exec libvirtd --pid-file "$1/pid" --config /etc/libvirt/libvirtd.conf
"""
BURNS = b"\xeb\xfe"
"""`jmp $`: what the guest does."""
DOMAIN = """\
<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>32</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='{disk}'/>
      <target dev='hda' bus='ide'/>
    </disk>
    <memballoon model='virtio'/>
  </devices>
</domain>
"""
NAME = "burner"
WAIT_S = 60.0


@dataclass
class LibvirtHost:
    """A libvirtd that runs."""

    folder: Path
    daemon: subprocess.Popen[bytes]

    @property
    def connect(self) -> str:
        return f"qemu:///system?socket={self.folder}/libvirt-sock"

    def virsh(self, *words: str, check: bool = True) -> str:
        argv = ["virsh", "--quiet", "--connect", self.connect, *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S, check=False)
        if check:
            assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """A new domain, that burns a core."""
        disk = self.folder / "disk"
        disk.write_bytes(BURNS.ljust(510, b"\0") + b"\x55\xaa")
        described = self.folder / "domain.xml"
        described.write_text(DOMAIN.format(name=NAME, disk=disk))
        self.virsh("create", str(described))

    def end(self) -> None:
        self.virsh("destroy", NAME, check=False)

    @property
    def quota(self) -> Path:
        """The kernel's own file, of all that the domain runs."""
        found = (f / n for f in self._groups() for n in ("cpu.cfs_quota_us", "cpu.max"))
        return next(file for file in found if file.exists())

    def settings(self) -> dict[str, bytes]:
        """Every quota of the domain's groups, to the byte."""
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max")
        return {
            str(file): file.read_bytes()
            for folder in self._groups()
            for name in names
            for file in sorted(folder.rglob(name))
        }

    def _groups(self) -> list[Path]:
        return [one for top in _tops() for one in (top / "machine").glob(f"qemu-*-{NAME}.*")]


def _tops() -> list[Path]:
    mounts = cgroup.parse_mounts((PROC / "self" / "mountinfo").read_text())
    return sorted({mount.point for mount in mounts.values()})


@contextmanager
def a_libvirt_host() -> Iterator[LibvirtHost]:
    """Ends with its domains, and with the control groups that it made."""
    folder = Path(tempfile.mkdtemp(prefix="wb-lv-"))
    there = {top for top in _tops() if (top / "machine").exists()}
    argv = ["unshare", "--mount", "sh", "-c", START, "sh", str(folder)]
    daemon = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    host = LibvirtHost(folder, daemon)
    try:
        deadline = time.monotonic() + WAIT_S
        while not (folder / "libvirt-sock").exists():
            assert daemon.poll() is None, daemon.communicate()
            assert time.monotonic() < deadline, "libvirtd does not begin"
            time.sleep(0.05)
        yield host
    finally:
        host.end()
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=WAIT_S)
        for top in set(_tops()) - there:
            for group in sorted((top / "machine").rglob("*/"), reverse=True):
                with suppress(OSError):
                    group.rmdir()
            with suppress(OSError):
                (top / "machine").rmdir()
        shutil.rmtree(folder, ignore_errors=True)
