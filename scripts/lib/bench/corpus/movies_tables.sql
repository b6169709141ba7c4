--
-- movies_tables.sql
--	Tables of movies in the manner of the Join Order Benchmark: skewed, and with columns that depend on
--	each other across tables, so that the planner expects other numbers of rows than there are.
--
-- Scale 1 has 200,000 titles, 2 million parts in their casts, and 1.2 million lines of information.  Old
-- titles are of few kinds, known movies have most of everything, and companies, languages, genres
-- and keywords of a movie depend on its country.
--

\set titles 'round(200000 * :scale)::int8'
\set names 'round(300000 * :scale)::int8'
\set parts 'round(2000000 * :scale)::int8'
\set lines 'round(1200000 * :scale)::int8'
\set companies 'round(20000 * :scale)::int8'
\set keywords 'round(15000 * :scale)::int8'

-- Returns the country of a movie, from 1 to 8.
CREATE FUNCTION country_of(movie int8) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 1 + skewed(movie, 1000, 8)::int;

-- Like skewed(), but less so, since what belongs to the same movie is joined to each other.
CREATE FUNCTION known(i int8, salt int8, n int8) RETURNS int8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (n * ((draw(i, salt, 1000000) / 1000000.0::float8) ^ 1.5))::int8 % n;

CREATE FUNCTION word(i int8) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN translate(substr(md5(i::text), 1, 4 + (i % 5)::int), '0123456789', 'aeioulmnrs');

CREATE TABLE kind_type AS
	SELECT k::int4 AS id, kind FROM unnest(ARRAY['movie', 'tv series', 'video', 'episode', 'video game']) WITH ORDINALITY AS t(kind, k);

CREATE TABLE role_type AS
	SELECT k::int4 AS id, role FROM unnest(ARRAY['actor', 'actress', 'producer', 'writer', 'director', 'editor', 'composer'])
		WITH ORDINALITY AS t(role, k);

CREATE TABLE company_type AS
	SELECT k::int4 AS id, kind FROM unnest(ARRAY['distributors', 'production companies', 'special effects']) WITH ORDINALITY AS t(kind, k);

CREATE TABLE info_type AS
	SELECT k::int4 AS id, info FROM unnest(ARRAY['genres', 'countries', 'languages', 'release dates', 'budget', 'runtimes', 'rating', 'votes'])
		WITH ORDINALITY AS t(info, k);

CREATE TABLE title AS
	SELECT i::int4 AS id, initcap(word(draw(i, :seed, 40000)) || ' ' || word(draw(i, :seed + 1, 5000))) AS title,
		1 + CASE WHEN year < 1960 THEN 0 ELSE skewed(i, :seed + 2, 5) END::int4 AS kind_id, year AS production_year,
		CASE WHEN draw(i, :seed + 3, 3) = 0 THEN draw(i, :seed + 4, 200)::int4 END AS episode_nr
	FROM (SELECT i, CASE WHEN draw(i, :seed + 5, 30) > 0 THEN 2020 - skewed(i, :seed + 6, 110)::int4 END AS year
		FROM generate_series(1, :titles) AS i) AS t;

CREATE TABLE name AS
	SELECT i::int4 AS id, initcap(word(draw(i, :seed + 10, 60000)) || ', ' || word(draw(i, :seed + 11, 900))) AS name,
		CASE draw(i, :seed + 12, 10) WHEN 0 THEN NULL WHEN 1 THEN 'f' WHEN 2 THEN 'f' WHEN 3 THEN 'f' ELSE 'm' END AS gender
	FROM generate_series(1, :names) AS i;

-- Women are actresses.
CREATE TABLE cast_info AS
	SELECT p.i::int4 AS id, name.id AS person_id, (1 + known(p.i, :seed + 20, :titles))::int4 AS movie_id,
		CASE WHEN draw(p.i, :seed + 21, 3) = 0 THEN 3 + skewed(p.i, :seed + 22, 5) WHEN gender = 'f' THEN 2 ELSE 1 END::int4 AS role_id,
		CASE draw(p.i, :seed + 23, 6) WHEN 0 THEN '(voice)' WHEN 1 THEN '(uncredited)' WHEN 2 THEN '(as ' || word(p.i) || ')' END AS note,
		draw(p.i, :seed + 24, 60)::int4 AS nr_order
	FROM generate_series(1, :parts) AS p(i) JOIN name ON name.id = 1 + known(p.i, :seed + 25, :names);

CREATE TABLE company_name AS
	SELECT i::int4 AS id, initcap(word(i)) || ' ' || (ARRAY['Film', 'Pictures', 'Studios', 'Television'])[1 + draw(i, :seed + 30, 4)] AS name,
		(ARRAY['[us]', '[gb]', '[fr]', '[de]', '[in]', '[jp]', '[it]', '[pl]'])[1 + i % 8] AS country_code
	FROM generate_series(1, :companies) AS i;

-- Most companies are of the country of the movie.
CREATE TABLE movie_companies AS
	SELECT i::int4 AS id, movie::int4 AS movie_id,
		(1 + skewed(i, :seed + 40, (:companies - 8) / 8) * 8
			+ CASE WHEN draw(i, :seed + 41, 5) > 0 THEN country_of(movie) - 1 ELSE draw(i, :seed + 42, 8) END)::int4 AS company_id,
		1 + skewed(i, :seed + 43, 3)::int4 AS company_type_id,
		CASE WHEN draw(i, :seed + 44, 2) = 0 THEN '(' || 1950 + draw(i, :seed + 45, 70) || ') (worldwide)' END AS note
	FROM (SELECT i, 1 + known(i, :seed + 46, :titles) AS movie FROM generate_series(1, :titles) AS i) AS m;

CREATE TABLE movie_info AS
	SELECT i::int4 AS id, movie::int4 AS movie_id, type::int4 AS info_type_id,
		CASE type
			WHEN 1 THEN (ARRAY['Drama', 'Comedy', 'Thriller', 'Horror', 'Action', 'Romance', 'Western'])
				[1 + (country_of(movie) + skewed(i, :seed + 50, 7)) % 7]
			WHEN 2 THEN (ARRAY['USA', 'UK', 'France', 'Germany', 'India', 'Japan', 'Italy', 'Poland'])[country_of(movie)]
			WHEN 3 THEN (ARRAY['English', 'English', 'French', 'German', 'Hindi', 'Japanese', 'Italian', 'Polish'])[country_of(movie)]
			WHEN 4 THEN (ARRAY['USA', 'UK', 'France', 'Germany'])[1 + draw(i, :seed + 51, 4)] || ':' || 1950 + draw(i, :seed + 52, 70)
			WHEN 5 THEN '$' || draw(i, :seed + 53, 100) * 1000000
			WHEN 6 THEN (60 + draw(i, :seed + 54, 120))::text
			WHEN 7 THEN (1 + draw(i, :seed + 55, 90) / 10.0)::numeric(3, 1)::text
			ELSE (skewed(i, :seed + 56, 100000))::text END AS info
	FROM (SELECT i, 1 + known(i, :seed + 57, :titles) AS movie, 1 + draw(i, :seed + 58, 8) AS type
		FROM generate_series(1, :lines) AS i) AS m;

CREATE TABLE keyword AS
	SELECT i::int4 AS id, word(i) || '-' || word(i * 7 + 1) AS keyword FROM generate_series(1, :keywords) AS i;

CREATE TABLE movie_keyword AS
	SELECT i::int4 AS id, movie::int4 AS movie_id,
		(1 + skewed(i, :seed + 60 + country_of(movie), :keywords))::int4 AS keyword_id
	FROM (SELECT i, 1 + known(i, :seed + 70, :titles) AS movie FROM generate_series(1, :titles * 2) AS i) AS m;

ALTER TABLE kind_type ADD PRIMARY KEY (id);
ALTER TABLE role_type ADD PRIMARY KEY (id);
ALTER TABLE company_type ADD PRIMARY KEY (id);
ALTER TABLE info_type ADD PRIMARY KEY (id);
ALTER TABLE title ADD PRIMARY KEY (id);
ALTER TABLE name ADD PRIMARY KEY (id);
ALTER TABLE cast_info ADD PRIMARY KEY (id);
ALTER TABLE company_name ADD PRIMARY KEY (id);
ALTER TABLE movie_companies ADD PRIMARY KEY (id);
ALTER TABLE movie_info ADD PRIMARY KEY (id);
ALTER TABLE keyword ADD PRIMARY KEY (id);
ALTER TABLE movie_keyword ADD PRIMARY KEY (id);
CREATE INDEX ON cast_info (movie_id);
CREATE INDEX ON cast_info (person_id);
CREATE INDEX ON movie_companies (movie_id);
CREATE INDEX ON movie_companies (company_id);
CREATE INDEX ON movie_info (movie_id);
CREATE INDEX ON movie_keyword (movie_id);
CREATE INDEX ON movie_keyword (keyword_id);
VACUUM ANALYZE;
