-- Hints of pg_hint_plan decide how tables are read and joined, whoever sorts.
CREATE EXTENSION pg_hint_plan;
CREATE TABLE a AS SELECT g AS id, g % 100 AS k, md5(g::text) AS t FROM generate_series(1, 20000) g;
CREATE TABLE b AS SELECT g AS id, g % 300 AS k, md5((g + 1)::text) AS t FROM generate_series(1, 20000) g;
CREATE INDEX a_id ON a (id);
CREATE INDEX b_id ON b (id);
ANALYZE a, b;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
CREATE FUNCTION has(node text, query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found boolean := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		found := found OR line ~ node;
	END LOOP;
	RETURN found;
END $$;
SELECT has('Hash Join', '/*+ HashJoin(a b) */ SELECT * FROM a JOIN b USING (id) ORDER BY a.k, b.t');
SELECT has('Merge Join', '/*+ MergeJoin(a b) */ SELECT * FROM a JOIN b USING (id) ORDER BY a.k, b.t');
SELECT has('Nested Loop', '/*+ NestLoop(a b) IndexScan(b b_id) */ SELECT * FROM a JOIN b USING (id) ORDER BY a.k, b.t');
SELECT has('Seq Scan on a', '/*+ SeqScan(a) */ SELECT * FROM a WHERE id < 10 ORDER BY t');
SELECT has('Workers Planned: 3', '/*+ Parallel(a 3 hard) */ SELECT k, t FROM a ORDER BY t');
SELECT has('Workers Planned', '/*+ Parallel(a 0 hard) */ SELECT k, t FROM a ORDER BY t');
/*+ MergeJoin(a b) */ SELECT md5(string_agg(q::text, ',')) FROM (SELECT a.k, b.k, a.t FROM a JOIN b USING (id) ORDER BY a.t, b.k) q;
/*+ Parallel(a 2 hard) */ SELECT md5(string_agg(q::text, ',')) FROM (SELECT * FROM a ORDER BY t, id OFFSET 0) q;
/*+ Set(work_mem 64kB) */ SELECT md5(string_agg(q::text, ',')) FROM (SELECT * FROM a ORDER BY k, id OFFSET 0) q;
SELECT count(*), sum(r) FROM (/*+ SeqScan(a) */ SELECT row_number() OVER (PARTITION BY k ORDER BY t) AS r FROM a) q;
