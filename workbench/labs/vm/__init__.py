"""Functions in guests of QEMU, each in the network namespace and control group of its component."""

from workbench.labs.vm.vm_lab import VmLab

__all__ = ["VmLab"]
