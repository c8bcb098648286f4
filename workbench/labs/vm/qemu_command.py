"""The command line of a guest. Nothing is started here."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.labs.vm.guest_init import PORT
from workbench.labs.vm.vm_options import VmOptions

QEMU = "qemu-system-x86_64"
TAP = "tap0"
TRANSLATED_MIB = 64
"""What TCG keeps of translated code. Its own default grows with the host's memory."""
DEVICES = {"virtio": "virtio-net-pci", "e1000": "e1000"}
KERNEL_LINE = "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off"
"""A guest that panics reboots, which ends QEMU (`-no-reboot`)."""
SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True)
class Descriptors:
    """Numbers of open files that QEMU inherits: so a guest leaves no socket and no file behind,
    and its files need not be visible where it runs."""

    kernel: int
    initramfs: int
    agent: int
    monitor: int

    @property
    def all(self) -> tuple[int, ...]:
        return self.kernel, self.initramfs, self.agent, self.monitor


def command(options: VmOptions, cores: int, mac: str, given: Descriptors) -> tuple[str, ...]:
    """What starts a guest on the interface `TAP`; its console is QEMU's output.

    Parameters
    ----------
    cores : that the guest sees; what it gets of the host is the quota of its group.
    mac : of its network card.
    """
    accel = options.accel
    if options.emulated:
        accel += f",thread={'multi' if cores > 1 else 'single'},tb-size={TRANSLATED_MIB}"
    vhost = ",vhost=on" if options.vhost else ""
    return (
        *(QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "pc", "-accel", accel, "-cpu", "max" if options.emulated else "host"),
        *("-smp", str(cores), "-m", str(options.memory_mib), "-sandbox", SANDBOX),
        *("-kernel", f"/proc/self/fd/{given.kernel}"),
        *("-initrd", f"/proc/self/fd/{given.initramfs}", "-append", KERNEL_LINE),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *("-chardev", f"socket,id=agent,fd={given.agent}", "-device", "virtio-serial-pci"),
        *("-device", f"virtserialport,chardev=agent,name={PORT}"),
        *("-chardev", f"socket,id=monitor,fd={given.monitor}"),
        *("-mon", "chardev=monitor,mode=control"),
        *("-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no{vhost}"),
        # Without a ROM to boot from the network by, which is in a package of its own.
        *("-device", f"{DEVICES[options.nic]},netdev=net,mac={mac},romfile="),
    )


def mac_of(address: str) -> str:
    """A card's address after its IPv4 address, from those that belong to nobody."""
    return "52:54:" + ":".join(f"{int(part):02x}" for part in address.split("."))
