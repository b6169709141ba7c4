/*-------------------------------------------------------------------------
 *
 * icu_agreement.c
 *		Compares sort keys of ICU with PostgreSQL's comparisons.
 *
 * ICU has several ways of comparing strings, and one of making sort keys.  For collations
 * with some attributes they disagree; docs/design/keys.md says for which, and why.  An index
 * in the order of such keys would be corrupt, since PostgreSQL searches it by comparisons.
 *
 * The sample has what these attributes move or read as a whole: characters of each group
 * that can be reordered, digits of several scripts, punctuation, and letters with and
 * without marks.  Each comes alone and after some beginnings, since a comparison skips what
 * two strings have in common, and chooses its way by what follows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/string.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

#include "core/radix_sort.h"
#include "key/key_encoding.h"
#include "key/type_words.h"

/* Beginnings of strings. */
static const char *const beginnings[] = {"", "a", "á", "1", "я", "३"};

/* What follows them: spaces, punctuation, symbols, currencies, digits, letters, marks. */
static const char *const pieces[] = {
	" ", "_", "-", "`", "+", "$", "0", "1", "10", "½", "٣", "३", "३०", "๓", "３",
	"a", "B", "z", "é", "ß", "\xCC\x81", "α", "я", "א", "ا", "क", "あ", "\xE4\xB8\x80"
};

/* All of these together are more than all printable ASCII characters. */
#define MOST_STRINGS	(lengthof(beginnings) * lengthof(pieces))

#define STRING_BYTES	16

typedef struct GsSampleString
{
	Size		length;
	char		bytes[STRING_BYTES];
	uint64		words[GPUSORT_CPU_MAX_KEY_WORDS];
} GsSampleString;

/* The collations of which the answer is known. */
static List *agreeing = NIL;
static List *contradicting = NIL;

/* Make a string of each printable ASCII character.  Returns their number. */
static int
make_characters(GsSampleString *strings)
{
	int			count = 0;

	for (char c = ' '; c < 0x7F; c++)
	{
		strings[count].length = 1;
		strings[count++].bytes[0] = c;
	}
	return count;
}

/* Put the strings together, except those that are not the same in the server's encoding. */
static int
make_strings(GsSampleString *strings)
{
	int			count = 0;

	for (int b = 0; b < lengthof(beginnings); b++)
		for (int p = 0; p < lengthof(pieces); p++)
		{
			GsSampleString *string = &strings[count];

			string->length = snprintf(string->bytes, STRING_BYTES, "%s%s",
									  beginnings[b], pieces[p]);
			if (GetDatabaseEncoding() == PG_UTF8 || pg_is_ascii(string->bytes))
				count++;
		}
	return count;
}

/* Do the words of two strings differ, but not as a comparison says? */
static bool
is_wrong_pair(const GsSampleString *a, const GsSampleString *b, Oid collation)
{
	for (int w = 0; w < GPUSORT_CPU_MAX_KEY_WORDS; w++)
		if (a->words[w] != b->words[w])
		{
			int			cmp = varstr_cmp(a->bytes, a->length, b->bytes, b->length, collation);

			return a->words[w] < b->words[w] ? cmp >= 0 : cmp <= 0;
		}
	return false;
}

/* Encode a string, whose other words are zero. */
static void
encode_string(GsSampleString *string, const GsKeyEncoding *encoding)
{
	text	   *value = cstring_to_text_with_len(string->bytes, string->length);

	memset(string->words, 0, sizeof(string->words));
	if (gpusort_key_encoding_is_string(encoding))
		gpusort_key_encoding_string_words(encoding, PointerGetDatum(value), string->words,
										  GPUSORT_CPU_MAX_KEY_WORDS);
	else
		string->words[0] = gpusort_key_encoding_word(encoding, PointerGetDatum(value), 0);
	pfree(value);
}

/* Compare all pairs. */
static bool
compare_strings(GsSampleString *strings, int count, Oid collation, const GsKeyEncoding *encoding)
{
	bool		agrees = true;

	for (int i = 0; i < count && agrees; i++)
	{
		CHECK_FOR_INTERRUPTS();
		encode_string(&strings[i], encoding);
		for (int j = 0; j < i && agrees; j++)
			agrees = !is_wrong_pair(&strings[i], &strings[j], collation);
	}
	return agrees;
}

static bool
compare_sample(Oid collation, const GsKeyEncoding *encoding)
{
	GsSampleString *strings = palloc(MOST_STRINGS * sizeof(GsSampleString));
	bool		agrees =
		compare_strings(strings, make_characters(strings), collation, encoding) &&
		compare_strings(strings, make_strings(strings), collation, encoding);

	pfree(strings);
	return agrees;
}

bool
gpusort_icu_agreement_check(Oid collation, const GsKeyEncoding *encoding)
{
	List	  **answer;
	MemoryContext caller;

	if (list_member_oid(agreeing, collation))
		return true;
	if (list_member_oid(contradicting, collation))
		return false;
	answer = compare_sample(collation, encoding) ? &agreeing : &contradicting;
	caller = MemoryContextSwitchTo(TopMemoryContext);
	*answer = lappend_oid(*answer, collation);
	MemoryContextSwitchTo(caller);
	return answer == &agreeing;
}
