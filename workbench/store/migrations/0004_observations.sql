-- What was seen of every component beside its usage, window by window. A sample without rows: nobody
-- collected any then. A row without a value: it was looked for, and `detail` says why there is none.

CREATE TABLE observations (
    seq BIGINT NOT NULL,
    position INTEGER NOT NULL,
    "window" INTEGER NOT NULL,
    component VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    value DOUBLE,
    detail VARCHAR NOT NULL
);
COMMENT ON TABLE observations IS 'Evidence of each window: counts of it, means of levels (docs/evidence.md)';
COMMENT ON COLUMN observations."window" IS 'place of the window in the sample, from 0';
COMMENT ON COLUMN observations.component IS 'VNF instance, source, sink, host or workbench';
COMMENT ON COLUMN observations.value IS 'in the unit of the name; null: it could not be had';
COMMENT ON COLUMN observations.detail IS 'which core, kind or process; without a value, why';
