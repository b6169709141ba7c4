--
-- The C function of test/keys, which test/random/keys calls
--
\set library `pwd` '/test/keys/key_check'
CREATE FUNCTION key_check(keys anyarray, less regoperator DEFAULT 0) RETURNS text
	LANGUAGE c STRICT AS :'library';

-- Are spoiled weights of a locale noticed, and only these?  Each name of it is a locale.
CREATE FUNCTION locale_is_used(locale text, spoiled bool) RETURNS bool
	LANGUAGE c STRICT AS :'library';
SELECT 'locale checks: ' || coalesce(string_agg(DISTINCT CASE WHEN locale_is_used(collcollate, false)
	   AND NOT locale_is_used(replace(collcollate, '.utf8', '.UTF-8'), true) THEN 'right' ELSE 'wrong: ' || collcollate END, ', '), 'right')
FROM pg_collation WHERE collname LIKE 'locale~_%' ESCAPE '~' AND collcollate <> 'C';

-- The order of strings that differ in upper case, of up to 21 characters and of more, and of others.
CREATE FUNCTION case_check(collation_name name) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT key_check(array_agg(beginning || substr(s, 1, n) COLLATE %I))
		FROM unnest(''{"",A,é,"1 ","1 b",1b,"Ab ",aB,ab,"a b",a-b,-ab}''::text[]) AS beginning,
			 unnest(''{"letters, spaces & 1 digit","Letters, spaceS & 1 digit","chlLjSZaa-_ij/IJ; Nj dZ DZ"}''::text[]) AS s,
			 unnest(''{1,5,12,16,18,25}''::int4[]) AS n', collation_name) INTO result;
	RETURN result;
END $$;
SELECT 'upper case: ' || string_agg(DISTINCT regexp_replace(case_check(collname), ' .*', ''), ', ')
FROM pg_collation WHERE collname LIKE 'locale~_%' ESCAPE '~';

-- Are plain strings, whose keys for a GPU tell all, in the order of the C library?
CREATE FUNCTION locale_plain(locale text, pairs int4) RETURNS int4
	LANGUAGE c STRICT AS :'library';
SELECT 'plain strings: ' || coalesce(string_agg(collcollate, ', ') FILTER (WHERE wrong > 0), 'right')
FROM (SELECT collcollate, locale_plain(collcollate, 20000) AS wrong FROM pg_collation
	  WHERE collprovider = 'c' AND collencoding = pg_char_to_encoding('UTF8') AND collcollate ~ 'utf8$') AS locales;

-- Are strings with the contractions of each locale compared as by the C library?  Locales of this
-- machine with the same tables count as one.  GPUSORT_CONTRACTION_STEP=1 takes all cases.
\set contraction_step 199
\getenv contraction_step GPUSORT_CONTRACTION_STEP
CREATE FUNCTION locale_tables_hash(locale text) RETURNS int8
	LANGUAGE c STRICT AS :'library';
CREATE FUNCTION locale_contractions(locale text, step int4) RETURNS int4
	LANGUAGE c STRICT AS :'library';
SELECT format('contractions: right in %s of %s locales', count(locale_contractions(locale, :contraction_step)), count(*))
FROM (SELECT min(collcollate) AS locale FROM pg_collation
	  WHERE collprovider = 'c' AND collencoding = pg_char_to_encoding('UTF8') AND collcollate !~ '^(C|POSIX)'
	  GROUP BY locale_tables_hash(collcollate)) AS tables;

-- Has ICU's table of weights all characters but the one whose weight is spoiled?  Numbers are left
-- out of it if they are sorted as a whole, and punctuation if it counts for nothing.
CREATE FUNCTION icu_table_count(locale text, spoiled bool) RETURNS int4
	LANGUAGE c STRICT AS :'library';
SELECT 'ICU checks: ' || string_agg(DISTINCT CASE WHEN characters >= 106 AND icu_table_count(locale, true) = characters - 1
	   THEN 'right' ELSE format('wrong: %s, %s characters', locale, characters) END, ', ')
FROM (SELECT locale, icu_table_count(locale, false) AS characters FROM unnest(icu_locales()) AS locale) AS tables;

-- Of random strings, and of all letters followed by a mark, are the bytes that the tables tell those of ICU?
-- In Vietnamese, the letter in "ò" and a horn (U+031B) is not "o".
CREATE FUNCTION icu_table_is_right(locale text, string text) RETURNS bool
	LANGUAGE c STRICT AS :'library';
SELECT 'ICU bytes: ' || string_agg(DISTINCT CASE WHEN told > 100 AND wrong = 0 THEN 'right'
	   ELSE format('wrong: %s, %s of %s strings', locale, wrong, told) END, ', ')
FROM unnest(icu_locales()) AS locale,
	 LATERAL (SELECT count(is_right) AS told, count(*) FILTER (WHERE NOT is_right) AS wrong
			  FROM (SELECT icu_table_is_right(locale, string) AS is_right
					FROM (SELECT locale_text(hashint8extended(g, 5)) FROM generate_series(1, 1000) AS g
						  UNION ALL
						  SELECT 'a' || chr(letter) || chr(mark)
						  FROM generate_series(32, 255) AS letter, unnest('{795,803,807,808}'::int4[]) AS mark
						  WHERE letter NOT BETWEEN 127 AND 191) AS strings (string) OFFSET 0) AS answers) AS tables;

-- Checks the words of some strings by a collation of ICU with random attributes.  Digits and letters of
-- several scripts, punctuation, and strings that begin alike are what such attributes change.
CREATE FUNCTION attribute_check(n int8, nrows int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	attributes text[] := '{-ka-shifted,-kb-true,-kc-true,-kf-upper,-kf-lower,-kk-true,-kn-true,-kr-latn-digit,-kr-digit-latn,-kr-cyrl-latn,-kr-symbol-punct,-ks-level1,-ks-level2,-ks-level4,-kv-currency}';
	pieces text[] := string_to_array('a|á|A|b|1|10|0|९|१|०|٣|٢|𝟗|я|ж|α|क|一| |-|_|$|+|½', '|');
	locale text := one_of('{en,de,sv,es,ja,th,ar,hi,ru,zh,und,da}'::text[], n) || '-u' ||
		array_to_string(ARRAY(SELECT a FROM unnest(attributes) a WHERE hashint8extended(n, hashtext(a)) % 5 = 0), '');
	result text;
BEGIN
	IF locale LIKE '%-u' THEN
		locale := locale || CASE n % 2 WHEN 0 THEN '-kn-true' ELSE '-kr-latn-digit' END;
	END IF;
	EXECUTE format('CREATE COLLATION pg_temp.attributes (provider = icu, locale = %L)', locale);
	EXECUTE 'SELECT key_check((SELECT array_agg(s COLLATE pg_temp.attributes) FROM (
			SELECT string_agg($1[1 + abs(hashint8extended(g, i + $2) % cardinality($1))], '''' ORDER BY i) AS s
			FROM generate_series(1, $3) AS g, generate_series(1, 4) AS i WHERE i > g % 3 GROUP BY g) AS strings))'
		INTO result USING pieces, n, nrows;
	DROP COLLATION pg_temp.attributes;
	RETURN CASE WHEN result ~ '^same' THEN result ELSE locale || ': ' || result END;
END $$;

-- Shows that the check can fail: the operator class's comparison function disagrees
-- with its sort support, from which it gets its encoding.
CREATE FUNCTION backward_cmp(int4, int4) RETURNS int4 LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($2, $1)';
CREATE FUNCTION backward_lt(int4, int4) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 > $2';
CREATE FUNCTION backward_gt(int4, int4) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 < $2';
CREATE OPERATOR <<<< (FUNCTION = backward_lt, LEFTARG = int4, RIGHTARG = int4);
CREATE OPERATOR >>>> (FUNCTION = backward_gt, LEFTARG = int4, RIGHTARG = int4);
CREATE OPERATOR CLASS backward_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 <<<<, OPERATOR 5 >>>>, FUNCTION 1 backward_cmp(int4, int4), FUNCTION 2 btint4sortsupport(internal);
SELECT key_check('{1,2,3}'::int4[], '<<<<(int4,int4)');

CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION with_numbers (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION digits_last (provider = icu, locale = 'en-u-kr-latn-digit');
CREATE COLLATION native_numbers (provider = icu, locale = 'sv-u-kn-true');
CREATE COLLATION c_utf8 (provider = libc, locale = 'C.UTF-8');

-- C.UTF-8, for texts with zero bytes.  From 16 to 18, sorts ignore what follows a zero byte, but the comparison
-- function, which the checks call, does not.  There it is "C".
SELECT CASE WHEN current_setting('server_version_num')::int4 / 10000 BETWEEN 16 AND 18 THEN '"C"' ELSE 'c_utf8' END AS c_of_zeros \gset
CREATE COLLATION c_zeros FROM :c_of_zeros;
