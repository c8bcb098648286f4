"""Files of numbered packets: flows and frame sizes as asked, a number in each payload.

Scapy makes one frame of each size; what differs from packet to packet (source port and number) is
written into copies of it, 65,536 packets in some 20 ms where Scapy alone takes 10 s. Each has UDP's
checksum, which a packet without one would lose where it is translated to IPv6 (RFC 7915, 4.5).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.traffic.packets import PacketPath

MARK = 0x57426B70
"""Begins each payload, before the packet's number and how many there are before they begin anew."""
HEADERS_BYTES = 14 + 20 + 8
"""Ethernet, IPv4 and UDP."""
_ADDRESSES, _UDP, _CHECKSUM = 26, 34, 40
"""Where in a frame IPv4's addresses, UDP's header and its checksum begin."""
SMALLEST_FRAME, LARGEST_FRAME = 64, 1514
SMALLEST, LARGEST = SMALLEST_FRAME - HEADERS_BYTES, LARGEST_FRAME - HEADERS_BYTES
"""Bytes of payload, as `packetsize` says them."""
IMIX = (*[SMALLEST] * 7, *[594 - HEADERS_BYTES] * 4, LARGEST)
"""The Internet mix, 7:4:1: payloads of frames of 64, 594 and 1,514 bytes."""
MOST_FLOWS = 10_000
FIRST_PORT = 2048
MOST_PACKETS = 65_536
MOST_BYTES = 64 << 20
_MAGIC, _ETHERNET = 0xA1B2C3D4, 1


def numbered(
    path: PacketPath, port: int, sizes: Sequence[int], flows: int, count: int
) -> tuple[bytes, int]:
    """A pcap file and how many packets it holds, at most `count`.

    Parameters
    ----------
    sizes : payloads in bytes; packets have them in turn.
    flows : source ports that packets have in turn.

    Raises
    ------
    TrafficError
        For sizes and flows that cannot be, and where Scapy is not installed.
    """
    for size in sizes:
        if not SMALLEST <= size <= LARGEST:
            raise TrafficError(
                f"a packet of {size} bytes makes a frame of {size + HEADERS_BYTES}, and frames "
                f"have {SMALLEST_FRAME} to {LARGEST_FRAME}",
                remedy=f"Choose a packetsize of {SMALLEST} to {LARGEST} bytes",
            )
    if not 1 <= flows <= MOST_FLOWS:
        raise TrafficError(
            f"{flows} flows cannot be made", remedy=f"Choose 1 to {MOST_FLOWS:,} of them"
        )
    mean = sum(sizes) / len(sizes) + HEADERS_BYTES + 16
    count = max(1, min(count, MOST_PACKETS, int((MOST_BYTES - 24) / mean)))

    frames = {size: _frame(path, port, size) for size in dict.fromkeys(sizes)}
    records = [
        _records(frames[size], np.arange(place, count, len(sizes)), flows, count)
        for place, size in enumerate(sizes)
    ]
    header = struct.pack("<IHHiIII", _MAGIC, 2, 4, 0, 0, 65_535, _ETHERNET)
    ordered = (records[number % len(sizes)][number // len(sizes)] for number in range(count))
    if len(frames) == 1 and len(sizes) == 1:
        return header + records[0].tobytes(), count
    return header + b"".join(row.tobytes() for row in ordered), count


def _records(frame: bytes, numbers: Any, flows: int, count: int) -> Any:
    """Records of a file, one row each: header and frame."""
    length = len(frame)
    rows = np.empty((numbers.size, 16 + length), dtype=np.uint8)
    # Nobody keeps to these times: the rate is tcpreplay's. A microsecond apart they are in order.
    stamps = np.stack([numbers // 1_000_000, numbers % 1_000_000], axis=1).astype("<u4")
    rows[:, 0:8] = stamps.view(np.uint8)
    rows[:, 8:16] = np.frombuffer(struct.pack("<II", length, length), dtype=np.uint8)
    rows[:, 16:] = np.frombuffer(frame, dtype=np.uint8)
    ports = (FIRST_PORT + numbers % flows).astype(">u2").reshape(-1, 1)
    rows[:, 16 + 34 : 16 + 36] = ports.view(np.uint8)
    payload = 16 + HEADERS_BYTES
    rows[:, payload : payload + 4] = np.frombuffer(struct.pack(">I", MARK), dtype=np.uint8)
    rows[:, payload + 4 : payload + 8] = numbers.astype(">u4").reshape(-1, 1).view(np.uint8)
    rows[:, payload + 8 : payload + 12] = np.frombuffer(struct.pack(">I", count), dtype=np.uint8)
    varied = (FIRST_PORT + numbers % flows) + (numbers >> 16) + (numbers & 0xFFFF)
    checksums = _checksums(rows[0, 16:].tobytes(), varied - varied[0]) if numbers.size else varied
    rows[:, 16 + _CHECKSUM : 16 + _CHECKSUM + 2] = (
        checksums.astype(">u2").reshape(-1, 1).view(np.uint8)
    )
    return rows


def _checksums(frame: bytes, more: Any) -> Any:
    """UDP's checksums (RFC 768) of a frame that has none, its words' sum raised by `more`."""
    udp = frame[_UDP:]
    summed = (
        frame[_ADDRESSES:_UDP] + struct.pack(">HH", 17, len(udp)) + udp + b"\0" * (len(udp) % 2)
    )
    total = np.frombuffer(summed, dtype=">u2").sum(dtype=np.int64) + more
    for _ in range(2):
        total = (total >> 16) + (total & 0xFFFF)
    return np.where(total == 0xFFFF, 0xFFFF, 0xFFFF - total)  # 0 means none


def _frame(path: PacketPath, port: int, size: int) -> bytes:
    try:
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Ether
        from scapy.packet import Raw
    except ImportError:
        raise TrafficError(
            "files of packets are made with Scapy, which is not installed",
            remedy="pip install 'vnf-workbench[packets]'",
        ) from None
    made = (
        Ether(src=path.source_mac, dst=path.hop_mac)
        / IP(src=path.source_address, dst=path.hop_address, flags="DF")
        / UDP(sport=FIRST_PORT, dport=port, chksum=0)
        / Raw(bytes(size))
    )
    return bytes(made)
