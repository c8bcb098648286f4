"""How guests are made: `vm:nic=e1000,memory=1024`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.domain.errors import UsageError

KERNELS = {"virtio": "linux-image-cloud-amd64", "e1000": "linux-image-amd64"}
"""Debian's kernel by NIC model: the small one has no driver for what clouds do not have."""
ACCELERATORS = ("tcg", "kvm")
MEMORY_MIB = (384, 1 << 20)
BOOT_S = (5, 3600)


@dataclass(frozen=True)
class VmOptions:
    """What follows the colon of `vm:`.

    Attributes
    ----------
    accel : `tcg` emulates every instruction, which runs anywhere; `kvm` runs them on the host's
        CPU.
    nic : what the guest takes its network card for.
    vhost : whether the host's kernel moves the packets of a virtio card in place of QEMU.
    memory_mib : of each guest; its file system is in there.
    boot_s : how long a guest may take until its agent answers.
    """

    accel: str = "tcg"
    nic: str = "virtio"
    vhost: bool = False
    memory_mib: int = 512
    boot_s: int = 180

    @property
    def emulated(self) -> bool:
        return self.accel == "tcg"

    @property
    def text(self) -> str:
        """As it is written behind `vm:`, every option stated."""
        return (
            f"accel={self.accel},nic={self.nic},vhost={int(self.vhost)},memory={self.memory_mib},"
            f"boot={self.boot_s}"
        )

    @classmethod
    def parse(cls, text: str) -> VmOptions:
        """Raises `UsageError`."""
        options = cls()
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name = pair.partition("=")[0]
            match name:
                case "accel":
                    options = replace(options, accel=_one_of(ACCELERATORS, pair, text))
                case "nic":
                    options = replace(options, nic=_one_of(tuple(KERNELS), pair, text))
                case "vhost":
                    options = replace(options, vhost=_one_of(("0", "1"), pair, text) == "1")
                case "memory":
                    options = replace(options, memory_mib=_whole(MEMORY_MIB, pair, text))
                case "boot":
                    options = replace(options, boot_s=_whole(BOOT_S, pair, text))
                case _:
                    raise UsageError(
                        f"{name!r} is no option of the VM lab",
                        where=f"vm:{text}",
                        remedy="Choose from: accel, nic, vhost, memory (MiB), boot (seconds)",
                    )
        if options.vhost and options.nic != "virtio":
            raise UsageError(
                f"vhost moves the packets of a virtio card, and nic is {options.nic}",
                where=f"vm:{text}",
                remedy="Leave vhost or nic out",
            )
        return options


def _one_of(known: tuple[str, ...], pair: str, text: str) -> str:
    name, _, value = pair.partition("=")
    if value not in known:
        raise UsageError(
            f"{name} is {value!r}", where=f"vm:{text}", remedy=f"Give {' or '.join(known)}"
        )
    return value


def _whole(bounds: tuple[int, int], pair: str, text: str) -> int:
    name, _, value = pair.partition("=")
    low, high = bounds
    if not (value.isascii() and value.isdecimal() and low <= int(value[:12]) <= high):
        raise UsageError(
            f"{name} is {value[:20]!r}",
            where=f"vm:{text}",
            remedy=f"Give a whole number from {low} to {high}",
        )
    return int(value)
