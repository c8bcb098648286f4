"""Every KPI of a session's own samples, one row each, for questions to many sessions at once."""

from __future__ import annotations

from pathlib import Path

from workbench.store.database import Cursor, quoted

ROWS = 16384
"""Of a row group: files are sorted by KPI, and groups of others are not read."""

_QUERY = """
SELECT ? AS session,
    created.payload->>'$.campaign.name' AS campaign,
    created.payload->>'$.tool_version' AS version,
    created.payload->>'$.lab' AS lab,
    coalesce(shard.host, facts.cpu_model) AS host,
    s.target, c.key AS configuration, s.wl, k.kpi, k.value, s.valid, s.started_at
FROM samples s
JOIN sample_kpis k ON k.seq = s.seq
JOIN configurations c ON c.configuration = s.configuration
CROSS JOIN (SELECT payload FROM events WHERE seq = 1) created
CROSS JOIN (SELECT any_value(cpu_model) AS cpu_model FROM host_facts) facts
LEFT JOIN (
    SELECT payload->>'$.host' AS host, payload->>'$.target' AS target,
        CAST(payload->>'$.first_block' AS INTEGER) AS first_block,
        CAST(payload->>'$.last_block' AS INTEGER) AS last_block
    FROM events WHERE type = 'ShardFolded'
) shard ON shard.target = s.target AND s.block BETWEEN shard.first_block AND shard.last_block
WHERE s.purpose = 'profile'
ORDER BY k.kpi, s.target, s.wl
"""


def write_rows(cursor: Cursor, session: str, path: Path) -> None:
    """Write them as Parquet. The host is that of the shard, else the CPU that the session names."""
    cursor.execute(
        f"COPY ({_QUERY}) TO {quoted(path)}"
        f" (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS})",
        [session],
    )
