-- What a sample was taken for: by the campaign's sampler, or as a trial after it. DuckDB adds no column
-- with a constraint; `purpose` is never null.

ALTER TABLE samples ADD COLUMN purpose VARCHAR DEFAULT 'profile';
COMMENT ON COLUMN samples.purpose IS 'profile (campaign), canary, verification, greedy';
