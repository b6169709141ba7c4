/*-------------------------------------------------------------------------
 *
 * citext_bytes.c
 *		The bytes by which values of PostgreSQL's contrib module citext are compared.
 *
 * A comparison of citext makes both values lower case by the rules of the database's default
 * collation, whatever the collation of the comparison is, and then compares them as texts.
 * We make each value lower case only when its key is encoded.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_collation.h"
#include "utils/formatting.h"

#include "key/type_words.h"
#include "work.h"

#define ASCII_CHARACTERS	128

/* Bytes between two checks for interrupts. */
#define BLOCK_BYTES			((Size) 65536)

static unsigned char
lower_ascii(unsigned char character)
{
	return character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
}

/*
 * Is the lower case of ASCII that of English in the default collation?  In Turkish it is not.
 * A process has one database, so we look only once.
 */
static bool
has_simple_lower_case(void)
{
	static bool known = false;
	static bool simple;

	if (!known)
	{
		char		all[ASCII_CHARACTERS];
		char	   *lower;

		for (int c = 1; c < ASCII_CHARACTERS; c++)
			all[c - 1] = c;
		lower = str_tolower(all, ASCII_CHARACTERS - 1, DEFAULT_COLLATION_OID);
		simple = strlen(lower) == ASCII_CHARACTERS - 1;
		for (int c = 1; c < ASCII_CHARACTERS && simple; c++)
			simple = (unsigned char) lower[c - 1] == lower_ascii(c);
		pfree(lower);
		known = true;
	}
	return simple;
}

/* Make a string of ASCII lower case.  Returns false if it is another one. */
static bool
copy_lower_ascii(const GsBytes *bytes, unsigned char *lower)
{
	unsigned char seen = 0;

	for (Size start = 0; start < bytes->length && seen < ASCII_CHARACTERS;
		 start += BLOCK_BYTES)
	{
		Size		end = Min(start + BLOCK_BYTES, bytes->length);

		for (Size i = start; i < end; i++)
		{
			seen |= bytes->data[i];
			lower[i] = lower_ascii(bytes->data[i]);
		}
		gpusort_work_add(end - start);
		CHECK_FOR_INTERRUPTS();
	}
	return seen < ASCII_CHARACTERS;
}

GsBytes
gpusort_citext_bytes(Datum value)
{
	GsBytes		bytes = gpusort_bytes_get(value, 0, MaxAllocSize);
	GsBytes		lower = {.length = bytes.length};

	if (has_simple_lower_case())
	{
		lower.copy = palloc(bytes.length + 1);
		if (!copy_lower_ascii(&bytes, lower.copy))
		{
			pfree(lower.copy);
			lower.copy = NULL;
		}
		else
			lower.length = strnlen(lower.copy, bytes.length);
	}
	if (lower.copy == NULL)
	{
		lower.copy = str_tolower((const char *) bytes.data, bytes.length,
								 DEFAULT_COLLATION_OID);
		lower.length = strlen(lower.copy);
	}
	lower.data = lower.copy;
	gpusort_bytes_free(&bytes);
	return lower;
}
