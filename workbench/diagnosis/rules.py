"""The table of causes that ship, each with condition, threshold and its source, sentence, remedy.

A rule speaks only for what was collected. What it compares with is absolute where a mechanism says
so (40 ms, 200 ms, 1 s are constants of Linux' TCP), else the function on its own.
"""

from __future__ import annotations

from workbench.diagnosis import rules_cpu, rules_lab, rules_memory, rules_tcp

RULES = (
    rules_tcp.DELAYED_ACKNOWLEDGEMENT,
    rules_tcp.NAGLE,
    rules_tcp.WINDOW,
    rules_tcp.CHURN,
    rules_tcp.EPHEMERAL,
    rules_tcp.CONNTRACK,
    rules_tcp.OVERFLOW,
    rules_tcp.RETRANSMISSION,
    rules_tcp.OFFLOAD,
    rules_tcp.SMALL_WRITES,
    rules_cpu.QUOTA,
    rules_cpu.BURSTY,
    rules_cpu.CPU_USED_UP,
    rules_cpu.THREAD,
    rules_cpu.FEW_THREADS,
    rules_cpu.MANY_THREADS,
    rules_cpu.NEIGHBOUR,
    rules_cpu.COPY,
    rules_cpu.STEAL,
    rules_cpu.UNCHARGED,
    rules_cpu.NO_GAIN,
    rules_memory.MEMORY,
    rules_memory.DISK,
    rules_memory.DISK_SPENT,
    rules_lab.LAB,
)
"""By one name each in pyproject.toml."""
