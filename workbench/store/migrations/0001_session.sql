-- One session. `seq` is the number of the event that brought a row; rows of a list carry their
-- `position` in it. There are no keys: one writer numbers everything, and an index would have to be
-- kept at every commit and replayed with every write-ahead log.

CREATE TABLE schema_migrations (
    version INTEGER NOT NULL,
    applied_at DOUBLE NOT NULL,
    app_version VARCHAR NOT NULL,
    duckdb_version VARCHAR NOT NULL
);
COMMENT ON COLUMN schema_migrations.applied_at IS 'seconds since the epoch';

CREATE TABLE meta (key VARCHAR NOT NULL, value VARCHAR NOT NULL);

CREATE TABLE events (
    seq BIGINT NOT NULL,
    happened_at DOUBLE NOT NULL,
    type VARCHAR NOT NULL,
    payload JSON NOT NULL
);
COMMENT ON TABLE events IS 'Facts, in order; every other table follows from them but windows and series';
COMMENT ON COLUMN events.seq IS 'counts from 1 without gaps';
COMMENT ON COLUMN events.happened_at IS 'seconds since the epoch';
COMMENT ON COLUMN events.type IS 'class of the fact, such as SampleTaken';

CREATE TABLE descriptors (position INTEGER NOT NULL, path VARCHAR NOT NULL, text VARCHAR NOT NULL);
COMMENT ON TABLE descriptors IS 'Descriptors as given';

CREATE TABLE host_facts (
    lab VARCHAR NOT NULL,
    cores INTEGER NOT NULL,
    memory_bytes BIGINT NOT NULL,
    kernel VARCHAR NOT NULL,
    cpu_model VARCHAR NOT NULL,
    cgroup VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    image_digests MAP(VARCHAR, VARCHAR) NOT NULL,
    details MAP(VARCHAR, VARCHAR) NOT NULL
);
COMMENT ON COLUMN host_facts.memory_bytes IS 'bytes';
COMMENT ON COLUMN host_facts.image_digests IS 'by template name';

CREATE TABLE targets (
    position INTEGER NOT NULL,
    target VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    sink VARCHAR NOT NULL,
    vnfs VARCHAR[] NOT NULL,
    graph JSON NOT NULL,
    wl_name VARCHAR NOT NULL,
    wl_low DOUBLE NOT NULL,
    wl_high DOUBLE NOT NULL,
    wl_scale VARCHAR NOT NULL,
    wl_unit VARCHAR NOT NULL,
    wl_integer BOOLEAN NOT NULL
);
COMMENT ON COLUMN targets.vnfs IS 'from the source''s side, branch by branch';
COMMENT ON COLUMN targets.wl_low IS 'in wl_unit';
COMMENT ON COLUMN targets.wl_high IS 'in wl_unit';

CREATE TABLE configurations (
    configuration INTEGER NOT NULL,
    key VARCHAR NOT NULL,
    resources MAP(VARCHAR, STRUCT(number DOUBLE, "text" VARCHAR)) NOT NULL,
    workload MAP(VARCHAR, STRUCT(number DOUBLE, "text" VARCHAR)) NOT NULL
);
COMMENT ON COLUMN configurations.resources IS 'vnf.parameter to its value; vcpu in cores';
COMMENT ON COLUMN configurations.workload IS 'parameter to its value; the unit is the key''s suffix';

CREATE TABLE samples (
    seq BIGINT NOT NULL,
    id VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    configuration INTEGER NOT NULL,
    wl DOUBLE NOT NULL,
    repetition INTEGER NOT NULL,
    valid BOOLEAN NOT NULL,
    labels VARCHAR[] NOT NULL,
    load_model VARCHAR NOT NULL,
    kpi_definition VARCHAR NOT NULL,
    generator VARCHAR NOT NULL,
    planned BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    unfinished BIGINT NOT NULL,
    windows INTEGER NOT NULL,
    batches INTEGER NOT NULL,
    throttled_share DOUBLE NOT NULL,
    straddle_share DOUBLE NOT NULL,
    started_at DOUBLE NOT NULL,
    measured_s DOUBLE NOT NULL,
    lab_s DOUBLE NOT NULL,
    p_sla DOUBLE,
    p_sla_low DOUBLE,
    p_sla_high DOUBLE
);
COMMENT ON COLUMN samples.wl IS 'primary workload, in the unit of targets.wl_unit';
COMMENT ON COLUMN samples.planned IS 'requests';
COMMENT ON COLUMN samples.completed IS 'requests';
COMMENT ON COLUMN samples.errors IS 'requests';
COMMENT ON COLUMN samples.unfinished IS 'requests';
COMMENT ON COLUMN samples.throttled_share IS '0-1, throttled quota periods over all periods';
COMMENT ON COLUMN samples.straddle_share IS 'n/(X*T), the share of requests that meet a quota gap';
COMMENT ON COLUMN samples.started_at IS 'seconds since the epoch';
COMMENT ON COLUMN samples.measured_s IS 'seconds of steady load on the lab''s clock';
COMMENT ON COLUMN samples.lab_s IS 'seconds of the whole visit on the lab''s clock';
COMMENT ON COLUMN samples.p_sla IS '0-1, probability of a response time within the SLA''s limit';

CREATE TABLE sample_kpis (
    seq BIGINT NOT NULL,
    position INTEGER NOT NULL,
    kpi VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    low DOUBLE NOT NULL,
    high DOUBLE NOT NULL
);
COMMENT ON COLUMN sample_kpis.kpi IS 'name with its unit as suffix: p95_ms';
COMMENT ON COLUMN sample_kpis.low IS '95 % interval, in the KPI''s unit';
COMMENT ON COLUMN sample_kpis.high IS '95 % interval, in the KPI''s unit';

CREATE TABLE sample_usage (
    seq BIGINT NOT NULL,
    position INTEGER NOT NULL,
    component VARCHAR NOT NULL,
    cpu_cores DOUBLE NOT NULL,
    cpu_share DOUBLE NOT NULL,
    throttled_share DOUBLE NOT NULL,
    throttled_s DOUBLE NOT NULL,
    memory_bytes DOUBLE NOT NULL,
    rx_mbps DOUBLE NOT NULL,
    tx_mbps DOUBLE NOT NULL,
    threads INTEGER NOT NULL
);
COMMENT ON COLUMN sample_usage.component IS 'VNF instance, source, sink or host';
COMMENT ON COLUMN sample_usage.cpu_cores IS 'cores, mean';
COMMENT ON COLUMN sample_usage.cpu_share IS '0-1 of the allocation';
COMMENT ON COLUMN sample_usage.throttled_s IS 'seconds';
COMMENT ON COLUMN sample_usage.memory_bytes IS 'bytes';
COMMENT ON COLUMN sample_usage.rx_mbps IS 'Mbit/s';
COMMENT ON COLUMN sample_usage.tx_mbps IS 'Mbit/s';

CREATE TABLE findings (
    seq BIGINT NOT NULL,
    position INTEGER NOT NULL,
    reason VARCHAR NOT NULL,
    figure DOUBLE NOT NULL,
    "limit" DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL
);

CREATE TABLE windows (
    seq BIGINT NOT NULL,
    position INTEGER NOT NULL,
    start_s DOUBLE NOT NULL,
    duration_s DOUBLE NOT NULL,
    planned BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    unfinished BIGINT NOT NULL,
    service_growth DOUBLE NOT NULL,
    service_buckets INTEGER[] NOT NULL,
    service_counts BIGINT[] NOT NULL,
    service_censored_buckets INTEGER[] NOT NULL,
    service_censored_counts BIGINT[] NOT NULL,
    response_growth DOUBLE NOT NULL,
    response_buckets INTEGER[] NOT NULL,
    response_counts BIGINT[] NOT NULL,
    response_censored_buckets INTEGER[] NOT NULL,
    response_censored_counts BIGINT[] NOT NULL
);
COMMENT ON COLUMN windows.start_s IS 'seconds on the lab''s clock';
COMMENT ON COLUMN windows.duration_s IS 'seconds on the lab''s clock';
COMMENT ON COLUMN windows.service_growth IS 'bucket i holds [growth^i, growth^(i+1)) microseconds';
COMMENT ON COLUMN windows.service_counts IS 'requests, from their own start';
COMMENT ON COLUMN windows.response_growth IS 'bucket i holds [growth^i, growth^(i+1)) microseconds';
COMMENT ON COLUMN windows.response_counts IS 'requests, from their planned time';

CREATE TABLE series (
    seq BIGINT NOT NULL,
    position INTEGER NOT NULL,
    second DOUBLE NOT NULL,
    component VARCHAR NOT NULL,
    cpu_cores DOUBLE NOT NULL,
    throttled_share DOUBLE NOT NULL,
    memory_bytes DOUBLE NOT NULL,
    rx_mbps DOUBLE NOT NULL,
    tx_mbps DOUBLE NOT NULL
);
COMMENT ON COLUMN series.second IS 'seconds on the lab''s clock';
COMMENT ON COLUMN series.cpu_cores IS 'cores, mean of the second';
COMMENT ON COLUMN series.throttled_share IS '0-1';
COMMENT ON COLUMN series.memory_bytes IS 'bytes';
COMMENT ON COLUMN series.rx_mbps IS 'Mbit/s';
COMMENT ON COLUMN series.tx_mbps IS 'Mbit/s';

CREATE TABLE models (
    seq BIGINT NOT NULL,
    target VARCHAR NOT NULL,
    configuration INTEGER NOT NULL,
    method VARCHAR NOT NULL,
    parameters MAP(VARCHAR, STRUCT(number DOUBLE, "text" VARCHAR)) NOT NULL,
    sample_ids VARCHAR[] NOT NULL,
    coefficients DOUBLE[] NOT NULL,
    fit_cpu_s DOUBLE NOT NULL
);
COMMENT ON TABLE models IS 'Every fit; the one that holds is the last of its configuration';
COMMENT ON COLUMN models.fit_cpu_s IS 'CPU seconds';

CREATE TABLE breakpoints (
    seq BIGINT NOT NULL,
    target VARCHAR NOT NULL,
    configuration INTEGER NOT NULL,
    rule VARCHAR NOT NULL,
    kpi VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    wl DOUBLE,
    low DOUBLE,
    high DOUBLE,
    note VARCHAR NOT NULL
);
COMMENT ON TABLE breakpoints IS 'Of every fit; those that hold are the last of their configuration';
COMMENT ON COLUMN breakpoints.wl IS 'primary workload, in the unit of targets.wl_unit';
COMMENT ON COLUMN breakpoints.low IS '95 % interval of wl';
COMMENT ON COLUMN breakpoints.high IS '95 % interval of wl';
