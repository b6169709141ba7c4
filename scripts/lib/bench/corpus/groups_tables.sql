--
-- groups_tables.sql
--	Tables in the manner of the H2O benchmark of data frames: one to be grouped by few and by many
--	values, and one to be joined to tables of which each is a thousand times as large as the last.
--
-- Scale 1 has 3 million rows in each of the three large tables, and 100 or 30,000 groups.  Fractions
-- are multiples of 1/64, so that float8 adds them exactly in any order.
--

\set rows 'greatest(round(3000000 * :scale), 100)::int8'

CREATE TABLE measures AS
	SELECT 'id' || lpad((1 + draw(i, :seed, 100))::text, 3, '0') AS id1,
		'id' || lpad((1 + draw(i, :seed + 1, 100))::text, 3, '0') AS id2,
		'id' || lpad((1 + draw(i, :seed + 2, :rows / 100))::text, 10, '0') AS id3,
		(1 + draw(i, :seed + 3, 100))::int4 AS id4, (1 + draw(i, :seed + 4, 100))::int4 AS id5,
		(1 + draw(i, :seed + 5, :rows / 100))::int4 AS id6,
		(1 + draw(i, :seed + 6, 5))::int4 AS v1, (1 + draw(i, :seed + 7, 15))::int4 AS v2,
		draw(i, :seed + 8, 6400) / 64.0::float8 AS v3
	FROM generate_series(1, :rows) AS i;

-- A tenth of the keys is missing on each side of each join.
CREATE TABLE facts AS
	SELECT (1 + draw(i, :seed + 10, greatest(:rows / 1000000, 9)))::int4 AS id1,
		(1 + draw(i, :seed + 11, :rows / 1000))::int4 AS id2, (1 + draw(i, :seed + 12, :rows))::int4 AS id3,
		'id' || (1 + draw(i, :seed + 11, :rows / 1000)) AS id5, draw(i, :seed + 13, 6400) / 64.0::float8 AS v1
	FROM generate_series(1, :rows) AS i;

CREATE TABLE small AS
	SELECT (i * 10 / 9)::int4 AS id1, 'id' || i * 10 / 9 AS id4, draw(i, :seed + 20, 6400) / 64.0::float8 AS v2
	FROM generate_series(1, greatest(:rows / 1000000, 9)) AS i;

CREATE TABLE medium AS
	SELECT (1 + draw(i, :seed + 30, greatest(:rows / 1000000, 9)))::int4 AS id1, (i * 10 / 9)::int4 AS id2,
		'id' || i * 10 / 9 AS id5, draw(i, :seed + 31, 6400) / 64.0::float8 AS v2
	FROM generate_series(1, :rows / 1000) AS i;

CREATE TABLE big AS
	SELECT (1 + draw(i, :seed + 40, greatest(:rows / 1000000, 9)))::int4 AS id1,
		(1 + draw(i, :seed + 41, :rows / 1000))::int4 AS id2, (i * 10 / 9)::int4 AS id3,
		'id' || i * 10 / 9 AS id6, draw(i, :seed + 42, 6400) / 64.0::float8 AS v2
	FROM generate_series(1, :rows) AS i ORDER BY draw(i, :seed + 43, 1 << 30), i;

VACUUM ANALYZE;
