-- TimescaleDB: hypertables, and its nodes above and below our sorts.
\set VERBOSITY terse
SET client_min_messages = error;
CREATE EXTENSION timescaledb;
CREATE TABLE points (at timestamptz NOT NULL, device int, value float8, note text);
SELECT create_hypertable('points', 'at', chunk_time_interval => interval '1 day');
INSERT INTO points SELECT timestamptz '2026-01-01 00:00+00' + g * interval '31 s', g * 7919 % 53, g * 0.5, md5(g::text)
FROM generate_series(1, 30000) g;
CREATE INDEX points_note ON points (note);
CREATE INDEX points_device ON points (device, at DESC);
VACUUM ANALYZE points;
SET timezone = 'UTC';
SELECT count(*) FROM show_chunks('points');
SELECT md5(string_agg(q::text, ',')) FROM (SELECT * FROM points ORDER BY at OFFSET 0) q;
SELECT md5(string_agg(q::text, ',')) FROM (SELECT * FROM points ORDER BY note OFFSET 0) q;
SELECT * FROM points ORDER BY at DESC LIMIT 3;
SELECT * FROM points ORDER BY value DESC, at LIMIT 3;
SELECT md5(string_agg(q::text, ',')) FROM (SELECT time_bucket('1 hour', at) AS hour, device, max(value), first(note, at), last(note, at)
	FROM points GROUP BY 1, 2 ORDER BY 1, 2 OFFSET 0) q;
SELECT count(*), sum(r) FROM (SELECT row_number() OVER (PARTITION BY device ORDER BY at) AS r FROM points) q WHERE r < 5;
SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY value), count(DISTINCT note) FROM points;
SELECT count(*) FROM drop_chunks('points', older_than => '2026-01-03'::timestamptz);
SELECT md5(string_agg(q::text, ',')) FROM (SELECT * FROM points ORDER BY device, at OFFSET 0) q;
