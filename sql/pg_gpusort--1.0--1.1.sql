/* pg_gpusort 1.0 to 1.1 */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_gpusort UPDATE TO '1.1'" to load this file. \quit
