# shellcheck shell=bash disable=SC2034
#
# locale_lines.sh
#	The lines of scripts/bench that sort texts in the order of a language.
#
# To be sourced after row_lines.sh and index_lines.sh.  Uses ROWS, make_table and measure
# of scripts/bench.  The tables have three tenths of ROWS, that of URLs a tenth.  Those
# without _icu sort by the C library's locale en_US.utf8.

LOCALE_LINES=(names names_16 names_few names_few_16 names_sorted names_md5 names_urls names_urls_end names_2
	names_icu names_icu_few index_names index_names_few index_names_icu)

# Names of about 24 characters, nearly all of them distinct.
NAME="initcap((ARRAY['smith', 'johnson', 'williams', 'brown', 'jones', 'garcia', 'miller', 'davis',
		'rodriguez', 'martinez', 'o''connor', 'lopez', 'müller', 'wilson', 'anderson', 'thomas'])[1 + (hashint8(i) & 15)]
	|| (ARRAY['', '-', 'son ', 'ova '])[1 + (hashint8(i + 1) & 3)] || substr(md5(i::text), 1, 5)) || ', '
	|| (ARRAY['James', 'Mary', 'Robert', 'Patricia', 'José', 'Jennifer', 'Zoë', 'Linda'])[1 + (hashint8(i + 2) & 7)]
	|| ' ' || substr(md5((i * 7)::text), 1, 3)"

# The same with 10000 distinct ones, in random order.
FEW_NAMES=${NAME//i::text/(hashint8extended(i, 5) % 5000)::text}
FEW_NAMES=${FEW_NAMES//hashint8(i/hashint8(hashint8extended(i, 5) % 5000}
FEW_NAMES=${FEW_NAMES//(i \* 7)/(hashint8extended(i, 5) % 5000 * 7)}

# make_collations: creates the collation of the C library.
make_collations()
{
	sql -c "SELECT to_regcollation('english') IS NULL" | grep -q f ||
		sql -c "CREATE COLLATION english (provider = libc, locale = 'en_US.utf8')"
}

# collated LINE: prints the line's collation.
collated()
{
	case $1 in
		*_icu*) echo '"en-x-icu"' ;;
		*) echo english ;;
	esac
}

# strings_of LINE: prints the expression that makes the line's strings.
strings_of()
{
	case $1 in
		*few*) echo "$FEW_NAMES" ;;
		*md5*) echo 'substr(md5(i::text), 1, 24)' ;;
		*urls_end) echo 'substr(md5(i::text), 1, 20)' ;;
		*urls) echo "'https://www.example.com/articles/archive/2024/section/page/' || substr(md5(i::text), 1, 20)" ;;
		*) echo "$NAME" ;;
	esac
}

locale_line()
{
	local line=$1 memory=2GB workers=0 rows=$((ROWS * 3 / 10)) strings collation what

	make_collations
	strings=$(strings_of "$line")
	collation=$(collated "$line")
	what="id, name, ${collation//\"/}"
	case $line in
		*_16) memory=16MB ;;
		*_2) workers=2 ;;
		*urls*) rows=$((ROWS / 10)) ;;
	esac
	case $line in
		index_*)
			index_of_rows "$line" "$rows" "index of $what" "$strings COLLATE $collation"
			return
			;;
		names_sorted) strings="lpad(i::text, 24, 'in order ')" ;;
	esac
	make_table "$line" "$rows" "i AS id, ($strings) COLLATE $collation AS k"
	LINE_ROWS=$rows
	sort_rows "$line" "$workers" "$memory" "$what" '(r).k' "SELECT * FROM $line ORDER BY k"
	sql -c "DROP TABLE $line"
}
