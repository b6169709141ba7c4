-- pg_repack writes a table anew, in an order, and builds its indexes.
CREATE EXTENSION pg_repack;
CREATE TABLE notes (id int PRIMARY KEY, k int, t text);
INSERT INTO notes SELECT g, g * 7919 % 10007, md5(g::text) FROM generate_series(1, 20000) g;
CREATE INDEX notes_t ON notes (t);
CREATE INDEX notes_k ON notes (k, id DESC);
DELETE FROM notes WHERE id % 3 = 0;
ANALYZE notes;
\! pg_repack -e -t notes -o 'k, id' 2>&1 | grep -c 'repacking table'
SELECT count(*), md5(string_agg(notes::text, ',' ORDER BY ctid)) FROM notes;
SELECT bool_and(before <= k) FROM (SELECT k, lag(k, 1, k) OVER (ORDER BY ctid) AS before FROM notes) q;
\! pg_repack -e -t notes -x 2>&1 | grep -c 'repacking index'
SET enable_seqscan = off;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM notes ORDER BY t OFFSET 0) q;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM notes ORDER BY k, id DESC OFFSET 0) q;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM notes ORDER BY t OFFSET 0) q;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM notes ORDER BY k, id DESC OFFSET 0) q;
