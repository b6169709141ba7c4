--
-- Types of the random tables, and functions that make their values
--
CREATE EXTENSION IF NOT EXISTS citext;
CREATE DOMAIN a_domain AS int4;
CREATE TYPE a_pair AS (h int8, t text);
CREATE TYPE a_level AS ENUM ('low', 'highest');
ALTER TYPE a_level ADD VALUE 'high' BEFORE 'highest';
ALTER TYPE a_level ADD VALUE 'middle' BEFORE 'high';
-- so many values that PostgreSQL has renumbered them in pg_enum
CREATE TYPE a_rank AS ENUM ('rank 0', 'rank 61');
DO $$ BEGIN
	FOR i IN 1 .. 60 LOOP
		EXECUTE format('ALTER TYPE a_rank ADD VALUE %L BEFORE %L', 'rank ' || i, 'rank 61');
	END LOOP;
END $$;
CREATE FUNCTION float8_of_bits(int8) RETURNS float8 LANGUAGE internal IMMUTABLE STRICT AS 'int8up';
CREATE FUNCTION float4_of_bits(int4) RETURNS float4 LANGUAGE internal IMMUTABLE STRICT AS 'int4up';

-- Returns one of the values of an array.
CREATE FUNCTION one_of(list anyarray, n int8) RETURNS anyelement LANGUAGE sql IMMUTABLE AS
	'SELECT list[1 + abs(n % cardinality(list))]';

-- Numerics of all magnitudes, many of which have their first digits in common.
CREATE FUNCTION numeric_of_all_sizes(n int8) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
	SELECT (CASE WHEN n % 3 = 0 THEN '-' ELSE '' END ||
			CASE WHEN n % 5 < 3 THEN '123456789012345' ELSE '1' END ||
			substr(translate(md5(n::text), 'abcdef', '012345'), 1, (abs(n / 16) % 33)::int) || 'e' ||
			CASE abs(n / 1000) % 6 WHEN 0 THEN 0 WHEN 1 THEN abs(n / 7) % 40 - 20 WHEN 2 THEN 205 + abs(n / 7) % 50
								   WHEN 3 THEN -235 - abs(n / 7) % 50 WHEN 4 THEN abs(n / 7) % 131020 ELSE -(abs(n / 7) % 16384) END)::numeric;
$$;

-- Texts of few values, many of which have zero bytes and control characters.
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
CREATE FUNCTION zero_text(n int8) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT (repeat('in common, ', abs(n % 4)::int)::bytea || CASE n % 3 WHEN 0 THEN '\x'::bytea ELSE substr('abcdefghi'::bytea, 1, abs(n / 31 % 9)::int) END ||
			coalesce(string_agg(substr('\x0000000101026162'::bytea, 1 + abs(hashint8extended(n, i) % 8)::int, 1), ''), ''))::text
	FROM generate_series(1, abs(n / 7 % 8)) i;
$$;

-- These exist since PostgreSQL 17.
SELECT current_setting('server_version_num')::int4 >= 170000 AS newer \gset
\if :newer
CREATE FUNCTION infinite_intervals() RETURNS interval[] LANGUAGE sql IMMUTABLE AS
	'SELECT ''{-infinity,infinity}''::interval[]';
\else
CREATE FUNCTION infinite_intervals() RETURNS interval[] LANGUAGE sql IMMUTABLE AS
	'SELECT ''{}''::interval[]';
\endif

-- Collations locale_1 to locale_24 of the C library; without the locale, they compare bytes.
DO $$
DECLARE
	locales text[] := '{en_US,de_DE,fr_FR,fr_CA,es_ES,cs_CZ,da_DK,sv_SE,nb_NO,hu_HU,hr_HR,pl_PL,cy_GB,et_EE,tr_TR,ru_RU,el_GR,he_IL,ar_SA,hi_IN,th_TH,ja_JP,zh_CN,ko_KR}';
BEGIN
	FOR i IN 1 .. cardinality(locales) LOOP
		BEGIN
			EXECUTE format('CREATE COLLATION locale_%s (provider = libc, locale = %L)', i, locales[i] || '.utf8');
		EXCEPTION WHEN OTHERS THEN
			EXECUTE format('CREATE COLLATION locale_%s (provider = libc, locale = ''C'')', i);
		END;
	END LOOP;
END $$;

-- Types that consist of others, and documents: of few values, nested up to some levels.
CREATE TYPE a_record AS (h int8, t text COLLATE "C", n numeric[], l text COLLATE locale_1, p a_pair);
CREATE TYPE a_range AS RANGE (subtype = text, collation = "en-x-icu");
CREATE FUNCTION a_document(n int8, levels int4) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	part int8 := hashint8extended(n, levels);
BEGIN
	RETURN CASE abs(part % CASE WHEN levels = 0 THEN 6 ELSE 12 END)
		WHEN 0 THEN 'null'
		WHEN 1 THEN to_jsonb(part % 3 = 0)
		WHEN 2 THEN to_jsonb((part % 50)::numeric / (1 + abs(part % 4)))
		WHEN 3 THEN to_jsonb(locale_text(part % 20))
		WHEN 4 THEN '[]'
		WHEN 5 THEN '{}'
		WHEN 6 THEN jsonb_build_array(a_document(part % 30, levels - 1))
		WHEN 7 THEN jsonb_build_array(part % 3, a_document(part % 20, levels - 1), NULL)
		WHEN 8 THEN jsonb_build_object(one_of('{k,K,key}'::text[], part), a_document(part % 20, levels - 1))
		ELSE jsonb_build_object('id', part % 3, 'Name', one_of('{ab,aB,a-b,é}'::text[], part), one_of('{x,X}'::text[], part / 7), a_document(part % 20, levels - 1), 'list', jsonb_build_array(part % 2, true))
	END;
END $$;

-- Locales of ICU, and their collations icu_1 to icu_16.  Not fr-CA: there, ICU 72 says of some strings with
-- several accents that a < b, b < c and c < a, so that they have no order.
CREATE FUNCTION icu_locales() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
	SELECT '{en,de-u-co-phonebk,fr,es-u-co-trad,cs,da,sv,hu,hr,cy,vi,tr,ja,th,en-u-kn-true,en-u-ka-shifted-kf-upper}'::text[];
$$;
DO $$ BEGIN
	FOR i IN 1 .. cardinality(icu_locales()) LOOP
		EXECUTE format('CREATE COLLATION icu_%s (provider = icu, locale = %L)', i, (icu_locales())[i]);
	END LOOP;
END $$;

-- What strings for these locales are made of: letters, and what locales order in a way of
-- their own: pairs and more that count as one letter, marks, ligatures, ideographs, and
-- characters that count for nothing or little.
CREATE FUNCTION locale_pieces() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
	SELECT string_to_array('a|b|c|d|e|l|l|m|n|s|z|A|B|C|L|Z|0|1|9|ch|Ch|cH|CH|aa|Aa|AA|ll|LL|lj|Lj|nj|dz|dž|dzs|ddzs|Ddz|cs|ccs|gy|ggy|sz|ssz|zs|ty|ng|rh|th|ff|g|h|għ|GĦ|n̵|t̵|o͘|gʻ|oʻ|'
		|| ' | |-|,|.|''|"|(|/|_|@|~|*|ä|ö|ü|Ü|ß|é|è|ê|É|ç|ñ|å|Å|ø|æ|Æ|œ|č|Č|ř|š|ž|ł|Ł|ą|ð|þ|ı|İ|i|I|ő|ű|l·|·|ŀ|õ|'
		|| 'а|Б|в|я|ё|й|і|α|Ω|ά|ς|א|ב|שׁ|ا|ل|لا|أ|ب|क|ख|क्ष|ा|्|ก|ข|เก|แ|า|ำ|์|あ|ア|ァ|ー|か|が|日|本|語|一|丁|龍|가|힣|ᄀ|ᅡ|𠀀|😀|ﬁ|㎏|Ⅳ|½|²|ª', '|')
		|| ARRAY[chr(1), chr(9), chr(127), chr(160), chr(173), chr(769), chr(776), chr(778), chr(803), chr(847), chr(8203), chr(8205), chr(8212), chr(8288), chr(65279), chr(65533), chr(57344)];
$$;

-- A string of up to 12 of them.
CREATE FUNCTION locale_text(n int8) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(string_agg((locale_pieces())[1 + hash % CASE WHEN n % 3 = 0 THEN 30 ELSE cardinality(locale_pieces()) END], '' ORDER BY i), '')
	FROM (SELECT i, abs(hashint8extended(n, i)) AS hash FROM generate_series(1, abs(n / 7 % 13)) i) pieces;
$$;
