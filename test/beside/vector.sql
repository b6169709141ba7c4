-- pgvector: vectors by distance, in their own order, and their indexes beside ours.
CREATE EXTENSION vector;
CREATE TABLE items AS SELECT g AS id, ARRAY[g % 97, g % 31, g * 7919 % 1009]::vector(3) AS v, md5(g::text) AS t
FROM generate_series(1, 20000) g;
ALTER TABLE items ADD PRIMARY KEY (id);
ANALYZE items;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM items ORDER BY v <-> '[1,2,3]', id OFFSET 0) q;
SELECT id FROM items ORDER BY v <-> '[1,2,3]', id LIMIT 5;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM items ORDER BY v <=> '[3,1,2]', id OFFSET 0) q;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM items ORDER BY v, id OFFSET 0) q;
SELECT md5(string_agg(q::text, ',')) FROM (SELECT t, v FROM items ORDER BY t OFFSET 0) q;
SELECT count(DISTINCT v), count(*) FROM items;
SELECT count(*), md5(string_agg(s, ',')) FROM (SELECT sum(v)::text AS s FROM items GROUP BY substr(t, 1, 2) ORDER BY substr(t, 1, 2)) q;
CREATE INDEX items_ivf ON items USING ivfflat (v vector_l2_ops) WITH (lists = 1);
SET enable_seqscan = off;
SELECT id FROM items ORDER BY v <-> '[5,5,500]' LIMIT 1;
DROP INDEX items_ivf;
CREATE INDEX items_hnsw ON items USING hnsw (v vector_l2_ops);
SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> '[5,5,500]' LIMIT 10) q;
CREATE INDEX items_v ON items (v);
CREATE INDEX items_t ON items (t);
SELECT id FROM items ORDER BY t DESC LIMIT 3;
SELECT id, v FROM items ORDER BY v, id LIMIT 3;
