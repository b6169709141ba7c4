# shellcheck shell=bash disable=SC2034
#
# server.sh
#	A PostgreSQL server to test with: finds one or installs Debian's packages,
#	makes a private copy of it, builds the extension and installs it there.
#
# The extension is installed in a copy of the server's directories below WORK.  Neither
# the installed server nor any cluster that runs on it changes, and only the
# installation of packages needs root.
#
# To be sourced after common.sh.  find_or_install_server sets:
#	PG_CONFIG	pg_config; that of the private copy after make_private_server
#	PG_BIN		its directory of programs, likewise
#	PG_VERSION	such as 15.18
#	PG_MAJOR	such as 15

SUPPORTED_MAJORS=(19 18 17 16 15)

SERVER=						# the pg_config that was found
MISSING=()					# packages to install


# ---- Existing programs and servers ----

# need PACKAGE TEST...: notes the package as missing if the test fails.
need()
{
	local package=$1

	shift
	"$@" >/dev/null 2>&1 || MISSING+=("$package")
}

have_c_library()
{
	echo '#include <stdio.h>' | cc -fsyntax-only -x c -
}

# Of many languages; a test of random strings sorts by them.
have_locales()
{
	[ "$(locale -a | grep -cx -e cs_CZ.utf8 -e ja_JP.utf8)" = 2 ]
}

have_english()
{
	locale -a | grep -qx en_US.utf8
}

# What make_english() needs.
need_english()
{
	have_english || need locales test -e /usr/share/i18n/locales/en_US
}

need_build_tools()
{
	need make command -v make
	need gcc command -v cc
	need libc6-dev have_c_library
}

need_test_tools()
{
	need g++ command -v g++
	need python3 command -v python3
	need perl command -v prove
	need libipc-run-perl perl -MIPC::Run -e 1
	need locales-all have_locales
	# PostgreSQL's source packages are compressed by one of these.
	need bzip2 command -v bzip2
	need xz-utils command -v xz
}

major_of()
{
	"$1" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/'
}

is_supported()
{
	[[ " ${SUPPORTED_MAJORS[*]} " = *" $1 "* ]]
}

# Returns whether this is the pg_config of a supported server that can be run and built
# for.
is_usable_server()
{
	[ -x "$1" ] && is_supported "$(major_of "$1")" &&
		[ -x "$("$1" --bindir)/initdb" ] &&
		[ -f "$("$1" --includedir-server)/postgres.h" ] &&
		[ -f "$("$1" --pgxs)" ]
}

# Finds the caller's PG_CONFIG and nothing else, or the newest of Debian's servers, or
# one on the PATH.
find_server()
{
	local major candidate

	if [ -n "${PG_CONFIG-}" ]; then
		SERVER=$(command -v "$PG_CONFIG") || die "PG_CONFIG=$PG_CONFIG: no such program"
		is_usable_server "$SERVER" ||
			die "PG_CONFIG=$PG_CONFIG is not that of a PostgreSQL ${SUPPORTED_MAJORS[-1]} to ${SUPPORTED_MAJORS[0]} server with its headers"
		return
	fi
	for major in "${SUPPORTED_MAJORS[@]}"; do
		candidate=/usr/lib/postgresql/$major/bin/pg_config
		if is_usable_server "$candidate"; then
			SERVER=$candidate
			return
		fi
	done
	SERVER=$(command -v pg_config) && is_usable_server "$SERVER"
}


# ---- Installing packages ----

# Names the server package to install: the headers for an existing server, or the newest
# supported server of this distribution.
name_server_packages()
{
	local major

	for major in "${SUPPORTED_MAJORS[@]}"; do
		if [ -x "/usr/lib/postgresql/$major/bin/postgres" ]; then
			MISSING+=("postgresql-server-dev-$major")
			return
		fi
	done
	for major in "${SUPPORTED_MAJORS[@]}"; do
		if apt-cache show "postgresql-server-dev-$major" >/dev/null 2>&1; then
			MISSING+=("postgresql-$major" "postgresql-server-dev-$major")
			return
		fi
	done
	die "this distribution has no PostgreSQL ${SUPPORTED_MAJORS[-1]} to ${SUPPORTED_MAJORS[0]}; install a server with its headers from another source"
}

# Keeps the installation of packages from creating a cluster, and from starting existing
# clusters that are down.
leave_clusters_alone()
{
	local conf=/etc/postgresql-common/createcluster.d/pg_gpusort.conf
	local policy=/usr/sbin/policy-rc.d

	as_root mkdir -p "$(dirname "$conf")"
	at_exit "as_root rm -f $conf"
	echo 'create_main_cluster = false' | as_root tee "$conf" >/dev/null
	if [ ! -e "$policy" ]; then
		at_exit "as_root rm -f $policy"
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod 755 "$policy"
	fi
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=300 "$@" >>"$WORK/log/apt.log" 2>&1 </dev/null || {
		tail -n 20 "$WORK/log/apt.log" >&2
		die "apt-get $1 failed (the end of its output is above); needed are ${MISSING[*]-} and a PostgreSQL server with its headers"
	}
}

update_packages()
{
	say "Updating the list of packages"
	apt update
}

# Installs the packages in MISSING.
install_packages()
{
	say "Installing $(join ', ' "${MISSING[@]}")"
	apt install --no-install-recommends "${MISSING[@]}"
	hash -r
}

# Installs what need() found missing, for scripts that need no server here.
install_tools()
{
	[ ${#MISSING[@]} -gt 0 ] || return 0
	make_work_dir
	update_packages
	install_packages
}

# Installs what need() found missing, and a server if there is none.
install_missing()
{
	local server_found=yes

	find_server || server_found=no
	if [ "$server_found" = yes ] && [ ${#MISSING[@]} -eq 0 ]; then
		return
	fi
	if ! command -v apt-get >/dev/null; then
		[ "$server_found" = yes ] ||
			MISSING+=("PostgreSQL ${SUPPORTED_MAJORS[-1]} to ${SUPPORTED_MAJORS[0]} with its server headers (PG_CONFIG= names one)")
		die "please install (names as in Debian): $(join ', ' "${MISSING[@]}")"
	fi
	if ! am_root && ! command -v sudo >/dev/null; then
		[ "$server_found" = yes ] || MISSING+=("postgresql" "postgresql-server-dev-all")
		die "not root and no sudo; please install: $(join ', ' "${MISSING[@]}")"
	fi
	update_packages
	[ "$server_found" = yes ] || name_server_packages
	leave_clusters_alone
	install_packages
	find_server || die "no usable PostgreSQL server after the installation"
}

join()
{
	local separator=$1 first=$2

	shift 2
	printf '%s' "$first" "${@/#/$separator}"
}


# ---- A private copy of the server ----

# mirror DIRECTORY: makes a copy of the directory below WORK/server, which consists of
# links.
mirror()
{
	[ -e "$WORK/server$1" ] || {
		mkdir -p "$WORK/server$1"
		cp -rs "$1/." "$WORK/server$1"
	}
}

# A server finds its files relative to its programs.  So copies of the programs, with
# links to all other files, are a separate server.
make_private_server()
{
	local what bin

	PG_VERSION=$("$SERVER" --version | sed -E 's/^PostgreSQL ([^ ]+).*/\1/')
	PG_MAJOR=$(major_of "$SERVER")
	bin=$("$SERVER" --bindir)
	mkdir -p "$WORK/server$bin"
	cp -rL "$bin/." "$WORK/server$bin"
	for what in pkglibdir sharedir includedir includedir-server; do
		mirror "$("$SERVER" "--$what")"
	done
	own "$WORK/server"
	PG_BIN=$WORK/server$bin
	PG_CONFIG=$PG_BIN/pg_config
}

# Compiles the locale en_US.utf8 for our servers, if the system does not have it.
make_english()
{
	have_english || {
		mkdir "$WORK/locale"
		own "$WORK/locale"
		must localedef localedef -i en_US -f UTF-8 "$WORK/locale/en_US.utf8"
		export LOCPATH=$WORK/locale
	}
}


# ---- The extension ----

# Additional arguments of make, such as FAULTS=yes.
MAKE_OPTIONS=()

# copy_tree DIRECTORY: copies the tree to it, except what earlier builds have left.
copy_tree()
{
	mkdir "$1"
	tar -C "$REPO" --exclude=./.git --exclude=./build --exclude='*.o' \
		--exclude='*.so' --exclude='*.bc' -cf - . | tar -C "$1" -xf -
	own "$1"
}

# The seconds that make took for the extension.
BUILD_SECONDS=

build_extension()
{
	local start

	say "Building for PostgreSQL $PG_VERSION"
	copy_tree "$WORK/tree"
	mkdir "$WORK/tree/build"
	own "$WORK/tree/build"
	get_kept_device
	start=$SECONDS
	must build make -s -C "$WORK/tree" "-j$(nproc)" "PG_CONFIG=$PG_CONFIG" \
		"${MAKE_DEVICE[@]}" "${MAKE_OPTIONS[@]}"
	BUILD_SECONDS=$((SECONDS - start))
	must install make -s -C "$WORK/tree" "PG_CONFIG=$PG_CONFIG" \
		"${MAKE_DEVICE[@]}" "${MAKE_OPTIONS[@]}" install
	keep_device
}

# keep_in_build NAME WHAT COMMAND...: provides build/NAME, which the command makes, in
# the copy of the tree, and keeps it in the tree for the next run.  An argument {} of
# the command is replaced by the path; without one the path is the last argument.  The
# machine's administrator may have provided it in /usr/src.
keep_in_build()
{
	local name=$1 what=$2 path=$WORK/tree/build/$1 found
	local -a command

	shift 2
	command=("${@/#\{\}/$path}")
	[[ " $* " = *" {} "* ]] || command+=("$path")
	for found in "$REPO/build/$name" "/usr/src/$name"; do
		if [ -e "$found" ]; then
			cp -r "$found" "$path"
			own "$path"
			return
		fi
	done
	if run_child "${command[@]}" >"$WORK/log/$name.log" 2>&1; then
		if mkdir -p "$REPO/build" 2>/dev/null && [ -w "$REPO/build" ]; then
			cp -r "$path" "$REPO/build/$name"
		fi
	else
		echo "could not get $what:"
		tail -n 5 "$WORK/log/$name.log"
	fi
}

# Provides the source of PostgreSQL's own suites as $CORE_SOURCE, if it can be had.
get_core_source()
{
	CORE_SOURCE=$WORK/tree/build/postgresql-$PG_VERSION
	keep_in_build "postgresql-$PG_VERSION" "PostgreSQL's source" \
		"$WORK/tree/scripts/lib/fetch-source" "$PG_VERSION" {} \
		src/test/regress src/test/isolation contrib/spi
}


# ---- The device library ----

# Arguments of make for the device library, and the name in build/ under which the
# compiled files are kept for the next run.
MAKE_DEVICE=(CUDA=no)
KEPT_DEVICE=

# use_gpus HINT: makes build_extension compile the library for the GPUs of this machine.
use_gpus()
{
	local capabilities

	capabilities=$(gpu_capabilities) || true
	{ [ -n "$capabilities" ] && have_nvcc; } ||
		die "there is no GPU here, or no nvcc; $1"
	MAKE_DEVICE=("CUDA_ARCHS=$capabilities")
	KEPT_DEVICE=device-${capabilities// /-}
}

# Makes build_extension keep the emulator instead, which install_emulator compiles.
use_emulator()
{
	need g++ command -v g++
	MAKE_DEVICE=(CUDA=no)
	KEPT_DEVICE=device-emulator
}

# Prints compute capabilities, such as "80 90".
gpu_capabilities()
{
	nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
		tr -d ' .' | sort -nu | paste -sd ' '
}

have_nvcc()
{
	command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]
}

# make_device TARGET...: runs make in the copy of the tree.
make_device()
{
	must device make -s -C "$WORK/tree" "-j$(nproc)" "PG_CONFIG=$PG_CONFIG" \
		"${MAKE_DEVICE[@]}" "$@"
}

install_emulator()
{
	make_device install-emu
	keep_device
}

get_kept_device()
{
	[ -n "$KEPT_DEVICE" ] && [ -d "$REPO/build/$KEPT_DEVICE" ] || return 0
	cp -a "$REPO/build/$KEPT_DEVICE" "$WORK/tree/build/cuda"
	own "$WORK/tree/build/cuda"
}

keep_device()
{
	[ -n "$KEPT_DEVICE" ] && [ -d "$WORK/tree/build/cuda" ] || return 0
	mkdir -p "$REPO/build" 2>/dev/null && [ -w "$REPO/build" ] || return 0
	rm -rf "${REPO:?}/build/$KEPT_DEVICE"
	cp -a "$WORK/tree/build/cuda" "$REPO/build/$KEPT_DEVICE"
}

# Does all of the above.  Before, the caller names what else it needs by need_*.
prepare_server()
{
	make_work_dir
	install_missing
	make_private_server
	build_extension
}
