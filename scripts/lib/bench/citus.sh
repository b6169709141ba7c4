# shellcheck shell=bash
#
# citus.sh
#	Builds Citus from its source and installs it into the private copy of the server.
#	To be sourced after server.sh.

# The last version that supports PostgreSQL 15, and where it is published.
CITUS_TAG=v13.2.2
CITUS_REPOSITORY=https://github.com/citusdata/citus.git

have_header()
{
	echo "#include <$1>" | cc -fsyntax-only -x c -
}

# need_citus_tools SOURCE: notes the packages that Citus needs.  An empty SOURCE is
# fetched.
need_citus_tools()
{
	[ -n "$1" ] || need git command -v git
	need flex command -v flex
	need libcurl4-openssl-dev have_header curl/curl.h
	need libkrb5-dev have_header gssapi/gssapi.h
	need liblz4-dev have_header lz4.h
	need libzstd-dev have_header zstd.h
	need libssl-dev have_header openssl/ssl.h
}

# install_citus SOURCE: builds a copy of that directory, or of a fetched one if SOURCE is
# empty.  Objects that an earlier build has left there are used.
install_citus()
{
	local copy=$WORK/citus

	if [ -n "$1" ]; then
		[ -x "$1/configure" ] || die "$1 is not the source of Citus"
		cp -a "$1" "$copy"
	else
		say "Fetching Citus $CITUS_TAG"
		logged fetch-citus git clone -q --depth 1 --branch "$CITUS_TAG" \
			"$CITUS_REPOSITORY" "$copy" ||
			die "could not fetch $CITUS_REPOSITORY; -s names a directory with its source"
	fi
	own "$copy"
	# Citus defines a static function have_createdb_privilege() for PostgreSQL 15.  Later
	# minor versions of 15 declare a function of that name themselves, as 16 does, so
	# that the two collide.  A macro would rename both of them.
	grep -rlZw have_createdb_privilege "$copy/src" --include='*.[ch]' |
		xargs -0r sed -i 's/\<have_createdb_privilege\>/citus_&/'
	own "$copy"
	say "Building Citus, which takes some minutes"
	must configure-citus env -C "$copy" "PG_CONFIG=$PG_CONFIG" ./configure -q
	must build-citus make -s -C "$copy" "-j$(nproc)" with_llvm=no
	must install-citus make -s -C "$copy" with_llvm=no install
}
