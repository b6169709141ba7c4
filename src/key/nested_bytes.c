/*-------------------------------------------------------------------------
 *
 * nested_bytes.c
 *		The bytes of values that consist of other values, in the order of their comparison.
 *
 * Arrays, records, ranges and documents (jsonb) are compared from their first part on: by
 * elements, columns, bounds, or keys and values, until one differs.  So the bytes of the parts
 * follow each other, each with a byte before it for what is compared before its value, such as
 * NULL or the type of a document's element.
 *
 * No value's bytes are the beginning of another one's, but for parts whose own bytes leave open
 * which of two is less, such as texts of a language.  After such a part the bytes end, since
 * nothing that follows counts unless the parts are equal, which the bytes do not tell.
 *
 * Documents have such texts first, the names of keys, and mostly the same ones.  Therefore the
 * bytes can be relative to another value, the reference, which is the pivot of a group of ties
 * (string_pivot.c).  Where the n-th part that leaves the order open is the same as in the
 * reference, the bytes go on.  Where only its bytes are, the comparison function tells on which
 * side of the reference it is.  Bytes without a reference are the beginning of those with any,
 * so that words made before remain right.
 *
 * The operator classes of arrays, records and ranges are those of any such type.  So the types
 * of the parts are looked up in the values.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

#include "core/key_codec.h"
#include "key/type_words.h"

/* Before the value of a part.  A list ends with GS_END. */
#define GS_END			0
#define GS_VALUE		1
#define GS_NULL			2

/* The bounds of a range.  An infinite lower one is below all values, an upper one above. */
#define GS_BELOW_ALL	0
#define GS_FINITE		1
#define GS_ABOVE_ALL	2

/* Numbers from this one on take five bytes instead of one. */
#define LARGE_NUMBER	0xFF

/* Sides of the reference. */
#define GS_LESS			1
#define GS_EQUAL		2
#define GS_GREATER		3

/* The parts of a reference that are kept. */
#define MAX_REFERENCE_PARTS		256
#define MAX_REFERENCE_BYTES		(1024 * 1024)

/* A type of parts. */
typedef struct GsPartType
{
	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Oid			collation;
	GsKeyEncoding encoding;
	FmgrInfo	comparison;
} GsPartType;

/* The types of the parts of values of one type. */
typedef struct GsPartTypes
{
	Oid			type;			/* as in the values: of an array, its elements */
	int32		typmod;
	TupleDesc	tupdesc;		/* of a record */
	TypeCacheEntry *range;		/* of a range */
	int			nparts;
	GsPartType *parts;			/* one, or one for each column */
	struct GsPartTypes *next;
} GsPartTypes;

/* A part of a reference. */
typedef struct GsReferencePart
{
	const GsPartType *type;
	Datum		value;
	unsigned char *bytes;
	Size		length;
} GsReferencePart;

struct GsNestedReference
{
	MemoryContext context;
	Size		size;
	int			count;
	GsReferencePart parts[MAX_REFERENCE_PARTS];
};

struct GsNested
{
	MemoryContext context;
	const struct GsNestedKind *kind;
	Oid			collation;		/* of the elements of arrays */
	GsFindPartEncoding find;
	GsWritePart write;
	GsPartTypes *types;			/* those found so far */
};

/* What is being written. */
typedef struct GsNestedWriter
{
	GsByteBuffer *buffer;
	GsWritePart write;
	const GsNestedReference *reference; /* or NULL */
	GsNestedReference *recorded;	/* that is being made, or NULL */
	int			nopen;			/* parts so far that leave the order open */
	bool		ended;			/* at such a part, or since nobody wants more */
	bool		open;			/* at such a part */
} GsNestedWriter;

/* Values that a btree comparison function compares. */
typedef struct GsNestedKind
{
	Oid			comparison;

	/* Look up the types of the parts of values of a type. */
	GsPartTypes *(*look_up_types) (GsNested *nested, Oid type, int32 typmod);
	void		(*write) (GsNestedWriter *writer, GsNested *nested, Datum value);
} GsNestedKind;

static void write_nested(GsNestedWriter *writer, GsNested *nested, Datum value);

/* ----------------------------------------------------------------
 *		types of parts
 * ----------------------------------------------------------------
 */

/*
 * Look up a type of parts.  If 'comparison' is valid and not that of the type's default
 * operator class, only it knows the order.  A type can have none: columns of records are not
 * compared if earlier ones differ, and PostgreSQL raises an error only if they are.
 */
static void
find_part_type(const GsNested *nested, GsPartType *part, Oid type, Oid collation,
			   Oid comparison)
{
	TypeCacheEntry *entry = lookup_type_cache(type,
											  TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC_FINFO);

	part->type = type;
	part->typlen = entry->typlen;
	part->typbyval = entry->typbyval;
	part->typalign = entry->typalign;
	part->collation = collation;
	if (OidIsValid(comparison) && comparison != entry->cmp_proc)
		fmgr_info_cxt(comparison, &part->comparison, nested->context);
	else if (OidIsValid(entry->cmp_proc_finfo.fn_oid))
	{
		fmgr_info_copy(&part->comparison, &entry->cmp_proc_finfo, nested->context);
		if (OidIsValid(entry->lt_opr))
			part->encoding = nested->find(entry->lt_opr, collation, NULL);
	}
}

static GsPartTypes *
make_types(Oid type, int32 typmod, int count)
{
	GsPartTypes *types = palloc0(sizeof(GsPartTypes));

	types->type = type;
	types->typmod = typmod;
	types->nparts = count;
	types->parts = palloc0(Max(count, 1) * sizeof(GsPartType));
	return types;
}

static GsPartTypes *
types_of_array(GsNested *nested, Oid element, int32 typmod)
{
	GsPartTypes *types = make_types(element, -1, 1);

	find_part_type(nested, &types->parts[0], element, nested->collation, InvalidOid);
	return types;
}

static GsPartTypes *
types_of_record(GsNested *nested, Oid type, int32 typmod)
{
	TupleDesc	tupdesc = lookup_rowtype_tupdesc_copy(type, typmod);
	GsPartTypes *types = make_types(type, typmod, tupdesc->natts);

	types->tupdesc = tupdesc;
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);

		if (!att->attisdropped)
			find_part_type(nested, &types->parts[i], att->atttypid, att->attcollation,
						   InvalidOid);
	}
	return types;
}

/* Of a range, or of the ranges of a multirange. */
static GsPartTypes *
types_of_range(GsNested *nested, Oid type, int32 typmod)
{
	GsPartTypes *types = make_types(type, -1, 1);

	types->range = lookup_type_cache(type, TYPECACHE_RANGE_INFO | TYPECACHE_MULTIRANGE_INFO);
	if (types->range->rngtype != NULL)
		types->range = types->range->rngtype;
	if (types->range->rngelemtype == NULL)
		elog(ERROR, "type %u is not a range type", type);
	find_part_type(nested, &types->parts[0], types->range->rngelemtype->type_id,
				   types->range->rng_collation, types->range->rng_cmp_proc_finfo.fn_oid);
	return types;
}

/* Texts, and numbers. */
static GsPartTypes *
types_of_document(GsNested *nested, Oid type, int32 typmod)
{
	GsPartTypes *types = make_types(JSONBOID, -1, 2);

	find_part_type(nested, &types->parts[0], TEXTOID, DEFAULT_COLLATION_OID, InvalidOid);
	find_part_type(nested, &types->parts[1], NUMERICOID, InvalidOid, InvalidOid);
	return types;
}

/* Returns them, from before if a value had this type: mostly all values have the same one. */
static const GsPartTypes *
find_types(GsNested *nested, Oid type, int32 typmod)
{
	GsPartTypes *types = nested->types;
	MemoryContext caller;

	while (types != NULL && (types->type != type || types->typmod != typmod))
		types = types->next;
	if (likely(types != NULL))
		return types;
	caller = MemoryContextSwitchTo(nested->context);
	types = nested->kind->look_up_types(nested, type, typmod);
	types->next = nested->types;
	nested->types = types;
	MemoryContextSwitchTo(caller);
	return types;
}

bool
gpusort_key_encoding_is_common(const GsKeyEncoding *encoding)
{
	const GsPartTypes *types;

	if (encoding->kind == GS_ENCODE_ENUM)
		return gpusort_enum_numbers_are_common(encoding->state->numbers);
	if (encoding->kind != GS_ENCODE_NESTED)
		return true;
	for (types = encoding->state->nested->types; types != NULL; types = types->next)
		for (int i = 0; i < types->nparts; i++)
			if (!gpusort_key_encoding_is_common(&types->parts[i].encoding))
				return false;
	return true;
}

/* ----------------------------------------------------------------
 *		writing parts
 * ----------------------------------------------------------------
 */

/* Nothing is written any more when the bytes have ended, neither here nor by write_value(). */
static inline void
write_byte(GsNestedWriter *writer, unsigned char byte)
{
	if (writer->ended)
		return;
	gpusort_byte_buffer_add(writer->buffer, &byte, 1);
	if (writer->buffer->length >= writer->buffer->wanted)
		writer->ended = true;
}

static void
write_int32(GsNestedWriter *writer, int32 number)
{
	uint32		word = (uint32) gpusort_codec_int32(number);

	for (int shift = 24; shift >= 0; shift -= 8)
		write_byte(writer, word >> shift);
}

/* Write how many there are of something. */
static void
write_count(GsNestedWriter *writer, int32 count)
{
	write_byte(writer, Min(count, LARGE_NUMBER));
	if (count >= LARGE_NUMBER)
		write_int32(writer, count);
}

/*
 * Keep a part of the reference, unless there are too many or the writer left out the end of its
 * bytes.  They are from 'start' on.
 */
static void
record_part(GsNestedWriter *writer, const GsPartType *type, Datum value, Size start)
{
	GsNestedReference *reference = writer->recorded;
	Size		length = writer->buffer->length - start;
	GsReferencePart *part = &reference->parts[reference->count];
	MemoryContext caller;

	reference->size += length + datumGetSize(value, type->typbyval, type->typlen);
	if (reference->count == MAX_REFERENCE_PARTS || reference->size > MAX_REFERENCE_BYTES ||
		writer->buffer->length >= writer->buffer->wanted)
	{
		writer->ended = writer->open = true;
		return;
	}
	caller = MemoryContextSwitchTo(reference->context);
	part->type = type;
	part->value = datumCopy(value, type->typbyval, type->typlen);
	part->bytes = memcpy(palloc(length + 1), writer->buffer->data + start, length);
	part->length = length;
	reference->count++;
	MemoryContextSwitchTo(caller);
}

/*
 * Returns the part of the reference with the next number, if it has one of this type and order.
 * Two columns of a record can be texts of different collations.
 */
static inline const GsReferencePart *
next_of_reference(const GsNestedWriter *writer, const GsPartType *type)
{
	const GsNestedReference *reference = writer->reference;
	const GsPartType *other;

	if (reference == NULL || writer->nopen >= reference->count ||
		!OidIsValid(type->comparison.fn_oid))
		return NULL;
	other = reference->parts[writer->nopen].type;
	return other->type == type->type && other->collation == type->collation &&
		other->comparison.fn_oid == type->comparison.fn_oid ?
		&reference->parts[writer->nopen] : NULL;
}

/* End the bytes of a part that leaves the order open, which begin at 'start'. */
static void
end_open_part(GsNestedWriter *writer, const GsPartType *type, Datum value, Size start)
{
	const GsReferencePart *other = next_of_reference(writer, type);
	int			order;

	writer->nopen++;
	if (writer->recorded != NULL)
	{
		record_part(writer, type, value, start);
		write_byte(writer, GS_EQUAL);
		return;
	}
	if (other == NULL || writer->buffer->length - start != other->length ||
		memcmp(writer->buffer->data + start, other->bytes, other->length) != 0)
	{
		writer->ended = writer->open = true;
		return;
	}
	order = DatumGetInt32(FunctionCall2Coll((FmgrInfo *) &type->comparison, type->collation,
											value, other->value));
	write_byte(writer, order < 0 ? GS_LESS : order > 0 ? GS_GREATER : GS_EQUAL);
	if (order != 0)
		writer->ended = writer->open = true;
}

/* If a part is the same as that of the reference, write its bytes.  Returns whether it is. */
static bool
write_same_part(GsNestedWriter *writer, const GsPartType *type, Datum value)
{
	const GsReferencePart *other = next_of_reference(writer, type);

	if (other == NULL || !datumIsEqual(value, other->value, type->typbyval, type->typlen))
		return false;
	writer->nopen++;
	gpusort_byte_buffer_add(writer->buffer, other->bytes, other->length);
	write_byte(writer, GS_EQUAL);
	return true;
}

static void
write_value(GsNestedWriter *writer, const GsPartType *type, Datum value)
{
	Size		start = writer->buffer->length;

	if (writer->ended)
		return;
	if (type->encoding.kind == GS_ENCODE_NESTED)
	{
		write_nested(writer, type->encoding.state->nested, value);
		return;
	}
	if (writer->reference != NULL && write_same_part(writer, type, value))
		return;
	if (writer->write(&type->encoding, value, writer->buffer) == GS_REST_COMPARE)
		end_open_part(writer, type, value, start);
	else if (writer->buffer->length >= writer->buffer->wanted)
		writer->ended = true;
}

/* ----------------------------------------------------------------
 *		writing values
 * ----------------------------------------------------------------
 */

/*
 * Elements, and if all of these are equal, what array_cmp() compares then: their number, which the
 * end tells, and the dimensions and their lower bounds.
 */
static void
write_array(GsNestedWriter *writer, GsNested *nested, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	const GsPartType *type = find_types(nested, ARR_ELEMTYPE(array), -1)->parts;
	int			count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const char *data = ARR_DATA_PTR(array);
	const uint8 *nulls = ARR_NULLBITMAP(array);

	for (int i = 0; i < count && !writer->ended; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls != NULL && att_isnull(i, nulls))
		{
			write_byte(writer, GS_NULL);
			continue;
		}
		write_byte(writer, GS_VALUE);
		write_value(writer, type, fetch_att(data, type->typbyval, type->typlen));
		data = att_addlength_pointer(data, type->typlen, data);
		data = (char *) att_align_nominal(data, type->typalign);
	}
	write_byte(writer, GS_END);
	write_byte(writer, ARR_NDIM(array));
	/* Of one dimension, the length is the number of elements. */
	for (int d = 0; d < ARR_NDIM(array) && ARR_NDIM(array) > 1; d++)
		write_int32(writer, ARR_DIMS(array)[d]);
	for (int d = 0; d < ARR_NDIM(array); d++)
		write_int32(writer, ARR_LBOUND(array)[d]);
	if (array != (ArrayType *) DatumGetPointer(value))
		pfree(array);
}

/* Columns, as record_cmp() compares them. */
static void
write_record(GsNestedWriter *writer, GsNested *nested, Datum value)
{
	HeapTupleHeader record = DatumGetHeapTupleHeader(value);
	const GsPartTypes *types = find_types(nested, HeapTupleHeaderGetTypeId(record),
										  HeapTupleHeaderGetTypMod(record));
	int			natts = types->tupdesc->natts;
	Datum	   *values = palloc(natts * (sizeof(Datum) + sizeof(bool)));
	bool	   *isnull = (bool *) (values + natts);
	HeapTupleData tuple = {
		.t_len = HeapTupleHeaderGetDatumLength(record),
		.t_data = record
	};

	ItemPointerSetInvalid(&tuple.t_self);
	heap_deform_tuple(&tuple, types->tupdesc, values, isnull);
	for (int i = 0; i < natts && !writer->ended; i++)
	{
		if (TupleDescAttr(types->tupdesc, i)->attisdropped)
			continue;
		write_byte(writer, isnull[i] ? GS_NULL : GS_VALUE);
		if (!isnull[i])
			write_value(writer, &types->parts[i], values[i]);
	}
	write_byte(writer, GS_END);
	pfree(values);
	if (record != (HeapTupleHeader) DatumGetPointer(value))
		pfree(record);
}

/* A bound, as range_cmp_bounds() compares it with others on its side. */
static void
write_bound(GsNestedWriter *writer, const GsPartType *type, const RangeBound * bound)
{
	if (bound->infinite)
	{
		write_byte(writer, bound->lower ? GS_BELOW_ALL : GS_ABOVE_ALL);
		return;
	}
	write_byte(writer, GS_FINITE);
	write_value(writer, type, bound->val);
	write_byte(writer, bound->inclusive == bound->lower ? 0 : 1);
}

static void
write_bounds(GsNestedWriter *writer, const GsPartType *type, const RangeBound * lower,
			 const RangeBound * upper)
{
	write_byte(writer, GS_VALUE);
	write_bound(writer, type, lower);
	write_bound(writer, type, upper);
}

/* As range_cmp() compares it: an empty one is less than others. */
static void
write_range(GsNestedWriter *writer, GsNested *nested, Datum value)
{
	RangeType  *range = DatumGetRangeTypeP(value);
	const GsPartTypes *types = find_types(nested, RangeTypeGetOid(range), -1);
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;

	range_deserialize(types->range, range, &lower, &upper, &empty);
	if (empty)
		write_byte(writer, GS_END);
	else
		write_bounds(writer, types->parts, &lower, &upper);
	if (range != (RangeType *) DatumGetPointer(value))
		pfree(range);
}

/* Its ranges, of which none is empty; of two that begin alike, the one with fewer is less. */
static void
write_multirange(GsNestedWriter *writer, GsNested *nested, Datum value)
{
	MultirangeType *multirange = DatumGetMultirangeTypeP(value);
	const GsPartTypes *types = find_types(nested, MultirangeTypeGetOid(multirange), -1);

	for (uint32 i = 0; i < multirange->rangeCount && !writer->ended; i++)
	{
		RangeBound	lower;
		RangeBound	upper;

		CHECK_FOR_INTERRUPTS();
		multirange_get_bounds(types->range, multirange, i, &lower, &upper);
		write_bounds(writer, types->parts, &lower, &upper);
	}
	write_byte(writer, GS_END);
	if (multirange != (MultirangeType *) DatumGetPointer(value))
		pfree(multirange);
}

static void
write_text(GsNestedWriter *writer, const GsPartType *type, const JsonbValue * string)
{
	Size		size = VARHDRSZ + string->val.string.len;
	text	   *copy = palloc(size);

	SET_VARSIZE(copy, size);
	memcpy(VARDATA(copy), string->val.string.val, string->val.string.len);
	write_value(writer, type, PointerGetDatum(copy));
	pfree(copy);
}

/*
 * One step of a document's iterator, as compareJsonbContainers() compares it: the type, then of an
 * object or array how many pairs or elements it has.  That of a scalar is an array of one element,
 * which is less than a real one.
 */
static void
write_token(GsNestedWriter *writer, const GsPartTypes *types, const JsonbValue * token)
{
	write_byte(writer, token->type);
	if (writer->ended)
		return;
	switch (token->type)
	{
		case jbvString:
			write_text(writer, &types->parts[0], token);
			break;
		case jbvNumeric:
			write_value(writer, &types->parts[1], NumericGetDatum(token->val.numeric));
			break;
		case jbvBool:
			write_byte(writer, token->val.boolean ? 1 : 0);
			break;
		case jbvArray:
			write_count(writer, token->val.array.nElems);
			write_byte(writer, token->val.array.rawScalar ? 0 : 1);
			break;
		case jbvObject:
			write_count(writer, token->val.object.nPairs);
			break;
		default:
			break;
	}
}

static void
write_document(GsNestedWriter *writer, GsNested *nested, Datum value)
{
	Jsonb	   *document = DatumGetJsonbP(value);
	const GsPartTypes *types = find_types(nested, JSONBOID, -1);
	JsonbIterator *iterator = JsonbIteratorInit(&document->root);
	JsonbIteratorToken step;
	JsonbValue	token;

	while (!writer->ended &&
		   (step = JsonbIteratorNext(&iterator, &token, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		if (step != WJB_END_ARRAY && step != WJB_END_OBJECT)
			write_token(writer, types, &token);
	}
	while (iterator != NULL)
	{
		JsonbIterator *parent = iterator->parent;

		pfree(iterator);
		iterator = parent;
	}
	if (document != (Jsonb *) DatumGetPointer(value))
		pfree(document);
}

static void
write_nested(GsNestedWriter *writer, GsNested *nested, Datum value)
{
	check_stack_depth();
	nested->kind->write(writer, nested, value);
}

bool
gpusort_nested_write(GsNested *nested, const GsNestedReference *reference, Datum value,
					 GsByteBuffer *buffer)
{
	GsNestedWriter writer = {
		.buffer = buffer,
		.write = nested->write,
		.reference = reference
	};

	write_nested(&writer, nested, value);
	return writer.open;
}

GsNestedReference *
gpusort_nested_reference_create(GsNested *nested, Datum value)
{
	GsNestedReference *reference = palloc0(sizeof(GsNestedReference));
	GsByteBuffer buffer = {.wanted = MAX_REFERENCE_BYTES};
	GsNestedWriter writer = {
		.buffer = &buffer,
		.write = nested->write,
		.recorded = reference
	};

	reference->context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort reference",
											   ALLOCSET_SMALL_SIZES);
	write_nested(&writer, nested, value);
	if (buffer.copy != NULL)
		pfree(buffer.copy);
	return reference;
}

void
gpusort_nested_reference_free(GsNestedReference *reference)
{
	MemoryContextDelete(reference->context);
	pfree(reference);
}

/* ----------------------------------------------------------------
 *		kinds of values
 * ----------------------------------------------------------------
 */

static const GsNestedKind kinds[] = {
	{F_BTARRAYCMP, types_of_array, write_array},
	{F_BTRECORDCMP, types_of_record, write_record},
	{F_RANGE_CMP, types_of_range, write_range},
	{F_MULTIRANGE_CMP, types_of_range, write_multirange},
	{F_JSONB_CMP, types_of_document, write_document}
};

GsNested *
gpusort_nested_create(Oid comparison, Oid collation, GsFindPartEncoding find, GsWritePart write)
{
	GsNested   *nested = palloc0(sizeof(GsNested));

	nested->context = CurrentMemoryContext;
	for (int k = 0; k < lengthof(kinds); k++)
		if (kinds[k].comparison == comparison)
			nested->kind = &kinds[k];
	Assert(nested->kind != NULL);
	nested->collation = collation;
	nested->find = find;
	nested->write = write;
	return nested;
}
