-- restore_tables.sql
--	The database mixed of scripts/bench restore: 20 tables, each with a primary key and two
--	more indexes, of many types.  The largest has :rows rows, the others fewer.  Every
--	second table has a foreign key to the one before it.

SET maintenance_work_mem = '256MB';
SELECT set_config('restore.rows', :'rows', false);

DO $$
DECLARE
	most int8 := current_setting('restore.rows');
	-- Pairs of indexes: what follows the name of the table.
	indexes text[] := ARRAY[
		'(i4); (t)',
		'(i8 DESC); (ts, i4)',
		'(t COLLATE "C"); (n)',
		'(f8); (lower(t))',
		'(few); (few, ts DESC)',
		'(d, i4) INCLUDE (n); (u)',
		'(few, t); (i8) WHERE few < 10',
		'(u); (b, i8)',
		'(n DESC NULLS LAST); (ts)',
		'((i8 % 1000), f8); (t, few)'];
	pair text[];
	nrows int8;
BEGIN
	FOR k IN 1..20 LOOP
		-- All, a half, a quarter, and so on down to a sixteenth.
		nrows := greatest(most >> (k % 5), 1);
		EXECUTE format($f$
			CREATE TABLE table_%s AS
			SELECT i AS id, (hashint8extended(i, 1) %% 1000000)::int AS i4, hashint8extended(i, 2) AS i8,
				   CASE WHEN i %% 50 > 0 THEN 'customer ' || md5((i %% 300000)::text) END AS t,
				   (hashint8extended(i, 3) %% 100000000) / 100.0 AS n, hashint8extended(i, 4) / 7.0::float8 AS f8,
				   (hashint8(i) & 1023) %% 100 AS few, timestamptz '2020-01-01' + i * interval '7 seconds' AS ts,
				   date '2000-01-01' + (hashint8(i) & 8191) AS d, md5(i::text)::uuid AS u, i %% 3 = 0 AS b,
				   1 + i %% %s AS parent
			FROM generate_series(1, %s) i$f$, k, greatest(most >> ((k - 1) % 5), 1), nrows);
		EXECUTE format('ALTER TABLE table_%s ADD PRIMARY KEY (id)', k);
		pair := string_to_array(indexes[1 + k % 10], '; ');
		EXECUTE format('CREATE INDEX ON table_%s %s', k, pair[1]);
		EXECUTE format('CREATE INDEX ON table_%s %s', k, pair[2]);
		IF k % 2 = 0 THEN
			EXECUTE format('ALTER TABLE table_%s ADD FOREIGN KEY (parent) REFERENCES table_%s', k, k - 1);
		END IF;
	END LOOP;
END $$;
