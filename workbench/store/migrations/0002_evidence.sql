-- What each label rests on, what the path past the functions carried, and on which deployment a
-- sample was taken. DuckDB adds no column with a constraint; `block` is never null.

ALTER TABLE samples ADD COLUMN block INTEGER DEFAULT 0;
ALTER TABLE samples ADD COLUMN bypass_throughput_rps DOUBLE;
ALTER TABLE samples ADD COLUMN bypass_mean_ms DOUBLE;
ALTER TABLE samples ADD COLUMN bypass_p95_ms DOUBLE;
COMMENT ON COLUMN samples.block IS 'deployment of the target, counted from 0';
COMMENT ON COLUMN samples.bypass_throughput_rps IS 'requests/s, the most from source to sink without the functions; null where not measured';
COMMENT ON COLUMN samples.bypass_mean_ms IS 'ms, from source to sink at the same load';
COMMENT ON COLUMN samples.bypass_p95_ms IS 'ms, from source to sink at the same load';

CREATE TABLE remarks (
    seq BIGINT NOT NULL,
    position INTEGER NOT NULL,
    label VARCHAR NOT NULL,
    figure DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL
);
COMMENT ON TABLE remarks IS 'Labels of a sample that do not invalidate it, each with its figure';
