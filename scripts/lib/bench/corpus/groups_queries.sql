--
-- groups_queries.sql
--	Groups and joins of a few columns, in the manner of the H2O benchmark.
--

-- by_text (): few groups
SELECT id1, sum(v1) AS v1 FROM measures GROUP BY id1;

-- by_two_texts (): 10,000 groups
SELECT id1, id2, sum(v1) AS v1 FROM measures GROUP BY id1, id2;

-- by_long_text (): groups of a hundred rows
SELECT id3, sum(v1) AS v1, sum(v3) AS v3 FROM measures GROUP BY id3;

-- by_long_text_in_order (id3): likewise, in their order
SELECT id3, sum(v1) AS v1, avg(v2) AS v2 FROM measures GROUP BY id3 ORDER BY id3;

-- means (): few groups of a number
SELECT id4, avg(v1) AS v1, avg(v2) AS v2, sum(v3) / count(*) AS v3 FROM measures GROUP BY id4;

-- sums_of_many (): many groups of a number
SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM measures GROUP BY id6;

-- medians (id4, id5): medians and deviations of many groups
SELECT id4, id5, percentile_cont(0.5) WITHIN GROUP (ORDER BY v3) AS median, round(stddev(v1), 6) AS deviation
FROM measures GROUP BY id4, id5 ORDER BY id4, id5;

-- medians_of_few (id4): of few
SELECT id4, percentile_cont(0.5) WITHIN GROUP (ORDER BY v3) AS median FROM measures GROUP BY id4 ORDER BY id4;

-- ranges (): the width of each group
SELECT id3, max(v1) - min(v2) AS width FROM measures GROUP BY id3;

-- top_two (id6, place): the two greatest of each group
SELECT id6, v3, place
FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS place FROM measures) AS r
WHERE place <= 2 ORDER BY id6, place;

-- top_two_by_lateral (id6, v3): likewise, asked of a list of groups
SELECT id6, v3 FROM (SELECT id6, unnest((array_agg(v3 ORDER BY v3 DESC))[1:2]) AS v3 FROM measures GROUP BY id6) AS t
ORDER BY id6, v3 DESC;

-- correlations (): of groups of a text and a number
SELECT id2, id4, round((corr(v1, v2) ^ 2)::numeric, 6) AS r2 FROM measures GROUP BY id2, id4;

-- by_six (): a group of each row
SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS rows FROM measures GROUP BY id1, id2, id3, id4, id5, id6;

-- different (id4): distinct numbers of few groups
SELECT id4, count(DISTINCT id6) AS id6, count(DISTINCT id3) AS id3 FROM measures GROUP BY id4 ORDER BY id4;

-- in_order (id3, v3, id6): all rows
SELECT * FROM measures ORDER BY id3, v3, id6;

-- join_small (): to a few rows
SELECT x.*, s.id4, s.v2 FROM facts AS x JOIN small AS s USING (id1);

-- join_medium (): to a thousandth
SELECT x.*, m.id1 AS other, m.v2 FROM facts AS x JOIN medium AS m USING (id2);

-- outer_join_medium (): with the rows that have none
SELECT x.*, m.id1 AS other, m.v2 FROM facts AS x LEFT JOIN medium AS m USING (id2);

-- text_join_medium (): by a text
SELECT x.*, m.id1 AS other, m.v2 FROM facts AS x JOIN medium AS m USING (id5);

-- join_big (): of two large tables
SELECT x.*, b.id6, b.v2 FROM facts AS x JOIN big AS b USING (id3);

-- join_big_in_order (id3, v1, id2): in the order of the keys
SELECT x.*, b.id6, b.v2 FROM facts AS x JOIN big AS b USING (id3) ORDER BY id3, v1, x.id2;

-- sums_of_join (id2): groups of a join
SELECT x.id2, count(*) AS rows, sum(x.v1) AS v1, sum(b.v2) AS v2
FROM facts AS x JOIN big AS b USING (id3) GROUP BY x.id2 ORDER BY x.id2;

-- sums_of_big_groups (): groups of the key of a join
SELECT id3, count(*) AS rows, sum(x.v1) AS v1, max(b.v2) AS v2 FROM facts AS x JOIN big AS b USING (id3) GROUP BY id3;
