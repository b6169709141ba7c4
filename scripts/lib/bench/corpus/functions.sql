--
-- functions.sql
--	What the tables of all families are made with.
--
-- The psql variables "scale" and "seed" choose their sizes and rows: the same two give the same
-- rows.  Texts have the default collation of the database.
--

-- Returns a number from 0 to n - 1 for row i, evenly distributed and different for each column.
CREATE FUNCTION draw(i int8, salt int8, n int8) RETURNS int8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hashint8extended(i, salt) & 9007199254740991) % n;

-- The same, but small numbers are much more frequent.
CREATE FUNCTION skewed(i int8, salt int8, n int8) RETURNS int8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (n * ((draw(i, salt, 1000000) / 1000000.0::float8) ^ 3))::int8 % n;
