--
-- movies_queries.sql
--	Joins of 4 to 12 tables of movies, in the manner of the Join Order Benchmark, and such joins with
--	orders and groups on top.
--

-- worldwide (): production companies of drama
SELECT min(t.title) AS title, min(mc.note) AS note, min(t.production_year) AS year
FROM company_type AS ct, info_type AS it, movie_companies AS mc, movie_info AS mi, title AS t
WHERE ct.kind = 'production companies' AND it.info = 'genres' AND mi.info = 'Drama' AND mc.note LIKE '%(worldwide)%'
	AND ct.id = mc.company_type_id AND t.id = mc.movie_id AND t.id = mi.movie_id AND it.id = mi.info_type_id;

-- keyword_of_german_companies (): one keyword
SELECT min(t.title) AS title
FROM company_name AS cn, keyword AS k, movie_companies AS mc, movie_keyword AS mk, title AS t
WHERE cn.country_code = '[de]' AND k.id < 20 AND cn.id = mc.company_id AND mc.movie_id = t.id AND t.id = mk.movie_id
	AND mk.keyword_id = k.id AND mc.movie_id = mk.movie_id;

-- new_french_films (): columns that depend on each other
SELECT min(t.title) AS title, min(cn.name) AS company
FROM company_name AS cn, info_type AS it, movie_companies AS mc, movie_info AS mi, title AS t
WHERE cn.country_code = '[fr]' AND it.info = 'languages' AND mi.info = 'French' AND t.production_year > 2000
	AND mi.info_type_id = it.id AND mi.movie_id = t.id AND mc.movie_id = t.id AND mc.company_id = cn.id AND mc.movie_id = mi.movie_id;

-- voices (): actresses who speak
SELECT min(n.name) AS name, min(t.title) AS title
FROM cast_info AS ci, name AS n, role_type AS rt, title AS t, movie_info AS mi, info_type AS it
WHERE ci.note = '(voice)' AND n.gender = 'f' AND rt.role = 'actress' AND it.info = 'release dates' AND mi.info LIKE 'USA:%'
	AND t.production_year BETWEEN 2005 AND 2015 AND ci.movie_id = t.id AND ci.person_id = n.id AND ci.role_id = rt.id
	AND mi.movie_id = t.id AND mi.info_type_id = it.id;

-- good_ratings (): a text that is a number
SELECT min(mi.info) AS rating, min(t.title) AS title
FROM info_type AS it, keyword AS k, movie_info AS mi, movie_keyword AS mk, title AS t, kind_type AS kt
WHERE it.info = 'rating' AND mi.info > '8.0' AND k.keyword LIKE '%a%' AND kt.kind = 'movie' AND t.production_year > 1990
	AND t.id = mi.movie_id AND t.id = mk.movie_id AND mk.keyword_id = k.id AND it.id = mi.info_type_id AND kt.id = t.kind_id;

-- sequels (): of eight tables
SELECT min(cn.name) AS company, min(k.keyword) AS keyword, min(t.title) AS title
FROM company_name AS cn, company_type AS ct, keyword AS k, movie_companies AS mc, movie_info AS mi, movie_keyword AS mk, title AS t,
	info_type AS it
WHERE cn.country_code <> '[us]' AND ct.kind = 'distributors' AND k.id < 200 AND mi.info IN ('Germany', 'Italy', 'Poland')
	AND it.info = 'countries' AND mc.movie_id = t.id AND mi.movie_id = t.id AND mk.movie_id = t.id AND mc.company_id = cn.id
	AND mc.company_type_id = ct.id AND mk.keyword_id = k.id AND mi.info_type_id = it.id;

-- whole_casts (): of ten tables
SELECT min(n.name) AS name, min(t.title) AS title, min(cn.name) AS company
FROM cast_info AS ci, company_name AS cn, company_type AS ct, info_type AS it, movie_companies AS mc, movie_info AS mi, name AS n,
	role_type AS rt, title AS t, kind_type AS kt
WHERE ci.note = '(uncredited)' AND cn.country_code = '[us]' AND it.info = 'genres' AND mi.info = 'Comedy' AND rt.role = 'writer'
	AND kt.kind = 'video' AND ct.kind = 'production companies' AND n.id = ci.person_id AND t.id = ci.movie_id AND rt.id = ci.role_id
	AND mc.movie_id = t.id AND mc.company_id = cn.id AND mc.company_type_id = ct.id AND mi.movie_id = t.id
	AND mi.info_type_id = it.id AND kt.id = t.kind_id;

-- all_tables (): of twelve
SELECT min(n.name) AS name, min(t.title) AS title, min(cn.name) AS company, min(k.keyword) AS keyword
FROM cast_info AS ci, company_name AS cn, company_type AS ct, info_type AS it, keyword AS k, kind_type AS kt,
	movie_companies AS mc, movie_info AS mi, movie_keyword AS mk, name AS n, role_type AS rt, title AS t
WHERE n.gender = 'm' AND cn.country_code IN ('[us]', '[gb]') AND it.info = 'budget' AND k.id < 50 AND rt.role IN ('actor', 'director')
	AND t.production_year > 1980 AND n.id = ci.person_id AND t.id = ci.movie_id AND rt.id = ci.role_id AND mc.movie_id = t.id
	AND mc.company_id = cn.id AND mc.company_type_id = ct.id AND mi.movie_id = t.id AND mi.info_type_id = it.id
	AND mk.movie_id = t.id AND mk.keyword_id = k.id AND kt.id = t.kind_id;

-- casts_by_year (year): groups of a large join
SELECT t.production_year AS year, count(*) AS parts, count(DISTINCT ci.person_id) AS people
FROM cast_info AS ci JOIN title AS t ON t.id = ci.movie_id JOIN kind_type AS kt ON kt.id = t.kind_id JOIN role_type AS rt ON rt.id = ci.role_id
WHERE kt.kind = 'movie' GROUP BY year ORDER BY year;

-- careers (parts, id): who has played most
SELECT n.id, n.name, count(*) AS parts, min(t.production_year) AS first, max(t.production_year) AS last
FROM cast_info AS ci JOIN name AS n ON n.id = ci.person_id JOIN title AS t ON t.id = ci.movie_id JOIN role_type AS rt ON rt.id = ci.role_id
WHERE rt.role IN ('actor', 'actress') GROUP BY n.id, n.name ORDER BY parts DESC, n.id LIMIT 100;

-- catalogue (title, movie, keyword, mk): rows of a join by text
SELECT t.title, t.id AS movie, k.keyword, mk.id AS mk, kt.kind
FROM title AS t JOIN movie_keyword AS mk ON mk.movie_id = t.id JOIN keyword AS k ON k.id = mk.keyword_id JOIN kind_type AS kt ON kt.id = t.kind_id
WHERE t.production_year > 1970 ORDER BY t.title, t.id, k.keyword, mk.id;

-- credits (movie, nr, id): whole casts in their order
SELECT ci.movie_id AS movie, ci.nr_order AS nr, ci.id, n.name, rt.role, t.title
FROM cast_info AS ci JOIN name AS n ON n.id = ci.person_id JOIN title AS t ON t.id = ci.movie_id JOIN role_type AS rt ON rt.id = ci.role_id
WHERE t.production_year BETWEEN 1990 AND 2010 ORDER BY ci.movie_id, ci.nr_order, ci.id;

-- companies_of_genres (genre, movies, company): groups of texts of a join of six
SELECT mi.info AS genre, cn.name AS company, count(DISTINCT t.id) AS movies
FROM title AS t, movie_info AS mi, info_type AS it, movie_companies AS mc, company_name AS cn, company_type AS ct
WHERE it.info = 'genres' AND ct.kind = 'distributors' AND mi.movie_id = t.id AND mi.info_type_id = it.id AND mc.movie_id = t.id
	AND mc.company_id = cn.id AND mc.company_type_id = ct.id
GROUP BY mi.info, cn.name ORDER BY genre, movies DESC, company;

-- colleagues (pairs, a, b): who plays together
SELECT a.person_id AS a, b.person_id AS b, count(*) AS pairs
FROM cast_info AS a JOIN cast_info AS b ON b.movie_id = a.movie_id AND b.person_id > a.person_id
	JOIN title AS t ON t.id = a.movie_id JOIN kind_type AS kt ON kt.id = t.kind_id
WHERE a.role_id = 1 AND b.role_id = 2 AND t.id > 500 AND kt.kind <> 'episode'
GROUP BY a.person_id, b.person_id ORDER BY pairs DESC, a, b LIMIT 100;

-- best_of_years (year, place): ranks in a join
SELECT year, title, rating, place
FROM (SELECT t.production_year AS year, t.title, mi.info AS rating,
		row_number() OVER (PARTITION BY t.production_year ORDER BY mi.info DESC, t.title, t.id, mi.id) AS place
	FROM title AS t JOIN movie_info AS mi ON mi.movie_id = t.id JOIN info_type AS it ON it.id = mi.info_type_id
		JOIN kind_type AS kt ON kt.id = t.kind_id
	WHERE it.info = 'rating') AS r
WHERE place <= 5 ORDER BY year, place;

-- genders_of_roles (role, gender): totals of a join
SELECT rt.role, n.gender, kt.kind, count(*) AS parts, count(DISTINCT t.id) AS movies
FROM cast_info AS ci JOIN name AS n ON n.id = ci.person_id JOIN role_type AS rt ON rt.id = ci.role_id JOIN title AS t ON t.id = ci.movie_id
	JOIN kind_type AS kt ON kt.id = t.kind_id
GROUP BY GROUPING SETS ((rt.role, n.gender), (rt.role, kt.kind), (rt.role)) ORDER BY rt.role, n.gender;

-- different_people (): distinct rows of a join
SELECT DISTINCT n.name, t.production_year, rt.role
FROM cast_info AS ci, name AS n, role_type AS rt, title AS t, movie_companies AS mc, company_name AS cn
WHERE n.id = ci.person_id AND rt.id = ci.role_id AND t.id = ci.movie_id AND mc.movie_id = t.id AND mc.company_id = cn.id
	AND cn.country_code = '[us]' AND rt.role <> 'editor';

-- keywords_of_casts (movies, keyword): groups of a join of seven
SELECT k.keyword, count(DISTINCT t.id) AS movies, count(DISTINCT n.id) AS people, min(t.title) AS title
FROM keyword AS k, movie_keyword AS mk, title AS t, cast_info AS ci, name AS n, role_type AS rt, kind_type AS kt
WHERE k.id = mk.keyword_id AND t.id = mk.movie_id AND ci.movie_id = t.id AND n.id = ci.person_id AND rt.id = ci.role_id AND kt.id = t.kind_id
	AND rt.role = 'director' AND n.gender IS NOT NULL AND kt.kind IN ('movie', 'video')
GROUP BY k.keyword ORDER BY movies DESC, k.keyword LIMIT 200;

-- newest (year, id): first rows of a join in order
SELECT t.id, t.production_year AS year, t.title, cn.name, mi.info
FROM title AS t JOIN movie_companies AS mc ON mc.movie_id = t.id JOIN company_name AS cn ON cn.id = mc.company_id
	JOIN movie_info AS mi ON mi.movie_id = t.id JOIN info_type AS it ON it.id = mi.info_type_id
WHERE it.info = 'runtimes' AND t.production_year IS NOT NULL
ORDER BY t.production_year DESC, t.id, mc.id, mi.id LIMIT 500;
