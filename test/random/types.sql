--
-- Types of the random tables, and functions that make their values
--
CREATE DOMAIN a_domain AS int4;
CREATE TYPE a_pair AS (h int8, t text);
CREATE TYPE a_level AS ENUM ('low', 'highest');
ALTER TYPE a_level ADD VALUE 'high' BEFORE 'highest';
ALTER TYPE a_level ADD VALUE 'middle' BEFORE 'high';
CREATE FUNCTION float8_of_bits(int8) RETURNS float8 LANGUAGE internal IMMUTABLE STRICT AS 'int8up';
CREATE FUNCTION float4_of_bits(int4) RETURNS float4 LANGUAGE internal IMMUTABLE STRICT AS 'int4up';
