/*-------------------------------------------------------------------------
 *
 * loading.h
 *		Whether the library was loaded for its sorts, or for its functions only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOADING_H
#define GPUSORT_LOADING_H

#include "fmgr.h"

/* Called by _PG_init(), before any other hooks are installed. */
extern void gpusort_loading_init(void);

/*
 * Are sorts and index builds of this session to be taken over?  Not if only the call of
 * one of our functions has loaded the library.
 */
extern bool gpusort_loading_is_wanted(void);

/* Does LOAD, or a list of libraries to preload, name this library by this? */
extern bool gpusort_loading_is_our_file(const char *file);

/* Called by the functions that GPUSORT_SQL_FUNCTION() makes. */
extern void gpusort_loading_note_function(void);

/*
 * Makes a function callable from SQL, as PG_FUNCTION_INFO_V1() does.  Before 16 that does
 * not export the function.
 */
#define GPUSORT_SQL_FUNCTION(function) \
	extern PGDLLEXPORT Datum function(PG_FUNCTION_ARGS); \
	extern PGDLLEXPORT const Pg_finfo_record *pg_finfo_##function(void); \
	const Pg_finfo_record * \
	pg_finfo_##function(void) \
	{ \
		static const Pg_finfo_record info = {1}; \
		gpusort_loading_note_function(); \
		return &info; \
	} \
	extern int	no_such_variable

#endif							/* GPUSORT_LOADING_H */
