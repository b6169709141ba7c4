-- Citus: distributed tables, whose shards are on this server.
SET client_min_messages = error;
CREATE EXTENSION citus;
\set directory `echo "$PGHOST"`
SELECT citus_set_coordinator_host(:'directory', :PORT);
SELECT citus_set_node_property(:'directory', :PORT, 'shouldhaveshards', true);
SET citus.shard_count = 4;
CREATE TABLE facts (id bigint, k int, t text);
SELECT create_distributed_table('facts', 'id');
CREATE TABLE names (k int PRIMARY KEY, name text);
SELECT create_reference_table('names');
INSERT INTO facts SELECT g, g * 7919 % 1009, md5(g::text) FROM generate_series(1, 20000) g;
INSERT INTO names SELECT g, 'name ' || g FROM generate_series(0, 1008) g;
CREATE INDEX facts_t ON facts (t);
SELECT md5(string_agg(q::text, ',')) FROM (SELECT * FROM facts ORDER BY t OFFSET 0) q;
SELECT * FROM facts ORDER BY k, id DESC LIMIT 3;
SELECT md5(string_agg(q::text, ',')) FROM (SELECT k, count(*), count(DISTINCT t), min(t) FROM facts GROUP BY k ORDER BY k OFFSET 0) q;
SELECT md5(string_agg(q::text, ',')) FROM (SELECT f.id, n.name FROM facts f JOIN names n USING (k) ORDER BY n.name, f.id OFFSET 0) q;
SELECT count(*), sum(r) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY t) AS r FROM facts) q;
SELECT count(*) FROM (SELECT DISTINCT t FROM facts) q;
