# shellcheck shell=bash disable=SC2034
#
# roots.sh
#	Other releases of Debian, to run our scripts with the PostgreSQL that they have.
#	debootstrap unpacks each release below build/roots, once; the scripts install
#	the newest server of the release there.  Needs root, and 2 GB for each release.
#
# The release "experimental" is unstable with PostgreSQL's packages of experimental,
# where the next major version is before it is released.
#
# The release "arm64" is Debian 12 with PostgreSQL for arm64, and compilers for arm64
# that run here.  qemu runs what they compile, and PostgreSQL; all else, such as make, is
# of this machine's own architecture, and takes no more time than otherwise.
#
# File systems are mounted in a mount namespace and all processes run in a process
# namespace.  Both end with the script, for whatever reason it ends, so that neither
# mounts nor servers are left behind.
#
# To be sourced after server.sh.  A script sets LOGS, the directory for its output, and
# calls prepare_roots before the other functions.

RELEASES=()
MIRROR=
ANEW=no

ROOTS=$REPO/build/roots
LOGS=

# Where the tree is in a root.
TREE_IN_ROOT=/usr/src/pg_gpusort

# What the root "arm64" has.  The headers of PostgreSQL, and the tool that builds packages, are
# only unpacked: what they depend on is not for two architectures at a time.
ARM64_PACKAGES=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu clang libc6-dev:arm64
	libstdc++-12-dev:arm64 postgresql-15:arm64 make perl libipc-run-perl locales-all bzip2
	xz-utils)
ARM64_UNPACKED=(postgresql-server-dev-15:arm64 postgresql-server-dev-all)
ARM64_COMPILERS=(gcc:gcc cc:gcc g++:g++ c++:g++)

# Where the CUDA toolkit is, on this machine and in roots, and the directory that roots see
# there.
CUDA_TOOLKIT=/usr/local/cuda
CUDA_SOURCE=$CUDA_TOOLKIT

# Which programs the kernel has qemu run.
QEMU_SETTINGS=/usr/lib/binfmt.d/qemu-aarch64.conf

# The name of arm64 among the targets of nvcc.
SBSA=sbsa-linux

# The compute capabilities to compile the library for GPUs for, or empty for none.
CUDA_ARCHS=

# root_option OPTION: takes one of the options r:m:n of getopts.
root_option()
{
	case $1 in
		r) RELEASES+=("$OPTARG") ;;
		m) MIRROR=$OPTARG ;;
		n) ANEW=yes ;;
		*) exit 2 ;;
	esac
}

# take_toolkit ARCHS [RELEASE]: uses the CUDA toolkit of this machine.  For the release "arm64",
# uses that of Debian 13 unless this machine's has NVIDIA's files for arm64.  Call it before
# lock_root, and not in a condition.
take_toolkit()
{
	CUDA_ARCHS=$1
	CUDA_SOURCE=$CUDA_TOOLKIT
	if [ "${2-}" = arm64 ] && [ ! -d "$CUDA_TOOLKIT/targets/$SBSA" ]; then
		CUDA_SOURCE=$ROOTS/toolkit-arm64
		if [ ! -d "$CUDA_SOURCE" ]; then
			say "Unpacking the CUDA toolkit for arm64"
			make_arm64_toolkit >>"$LOGS/arm64.log" 2>&1
		fi
	fi
	[ -x "$CUDA_SOURCE/bin/nvcc" ] || die "there is no $CUDA_SOURCE/bin/nvcc"
}

# prepare_roots RELEASE...: takes these releases if the caller has named none.
prepare_roots()
{
	[ ${#RELEASES[@]} -gt 0 ] || RELEASES=("$@")
	am_root || die "needs root, to change into the roots of other releases"
	need debootstrap command -v debootstrap
	[[ " ${RELEASES[*]} " != *' arm64 '* ]] || need qemu-user-static test -e "$QEMU_SETTINGS"
	install_tools
	[[ " ${RELEASES[*]} " != *' arm64 '* ]] || use_qemu
	mkdir -p "$LOGS"
}

# in_namespaces COMMAND...: runs the command and waits for it as run_child does, but as
# root.
in_namespaces()
{
	local status=0

	setsid unshare --mount --pid --fork --kill-child --mount-proc -- "$@" &
	CHILD=$!
	wait "$CHILD" || status=$?
	CHILD=
	return "$status"
}

# in_root RELEASE COMMAND...: a root that has a directory named CUDA_TOOLKIT sees CUDA_SOURCE
# there.
in_root()
{
	local -a variables=()

	# The search for leaks of AddressSanitizer does not work in qemu.  Tests wait several times
	# as long as otherwise for what has to come.
	[[ $1 != arm64* ]] || variables=(ASAN_OPTIONS=detect_leaks=0 PG_TEST_TIMEOUT_DEFAULT=900
		PGISOLATIONTIMEOUT=900)
	# The inner shell expands it.
	# shellcheck disable=SC2016
	in_namespaces bash -c '
		root=$1
		toolkit=$2
		source=$3
		shift 3
		mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" ||
			exit 1
		[ ! -d "$root$toolkit" ] || mount --rbind "$source" "$root$toolkit" ||
			exit 1
		exec chroot "$root" env -i HOME=/root TERM=dumb \
			PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
		bash "$ROOTS/$1" "$CUDA_TOOLKIT" "$CUDA_SOURCE" "${variables[@]}" "${@:2}"
}

# script_in_root RELEASE SCRIPT [ARGUMENT...]: runs one of our scripts.
script_in_root()
{
	in_root "$1" bash "$TREE_IN_ROOT/scripts/$2" "${@:3}"
}

# Has the kernel call qemu for programs of arm64, if it does not yet, until this script
# ends.
use_qemu()
{
	local formats=/proc/sys/fs/binfmt_misc

	if [ ! -e "$formats/register" ]; then
		mount -t binfmt_misc binfmt_misc "$formats" || die "the kernel has no binfmt_misc"
		at_exit "umount $formats"
	fi
	if [ ! -e "$formats/qemu-aarch64" ]; then
		grep '^:' "$QEMU_SETTINGS" >"$formats/register"
		at_exit "echo -1 >$formats/qemu-aarch64"
	fi
}

find_mirror()
{
	# apt expands the $(...), not the shell.
	# shellcheck disable=SC2016
	[ -n "$MIRROR" ] ||
		MIRROR=$(apt-get indextargets 'Created-By: Packages' 'Label: Debian' \
			--format '$(REPO_URI)' 2>/dev/null | sed -n 1p)
	[ -n "$MIRROR" ] ||
		die "apt knows no archive of Debian here (apt-get update may help); name one with -m"
}

# prepare_root RELEASE: makes the root unless it exists, and copies the tree into it.
# $LOGS/RELEASE.log is the log, of this and of what the caller runs there.
prepare_root()
{
	lock_root "$1"
	: >"$LOGS/$1.log"
	make_root "$1" || return
	copy_network "$ROOTS/$1"
	copy_tree_into "$ROOTS/$1"
}

# lock_root RELEASE: two scripts must not use a root at the same time.  This process has
# the lock until it ends or takes the next one.
lock_root()
{
	mkdir -p "$ROOTS"
	exec 9>"$ROOTS/$1.lock"
	flock -n 9 || {
		say "Waiting for another script that uses Debian $1"
		flock 9
	}
}

# A root is complete or does not exist.
make_root()
{
	local release=$1 root=$ROOTS/$1 base=$1

	[ "$ANEW" = no ] || rm -rf "$root"
	[ ! -d "$root" ] || return 0
	find_mirror
	say "Unpacking Debian $release"
	case $release in
		experimental) base=sid ;;
		arm64) base=bookworm ;;
	esac
	rm -rf "$root.new"
	in_namespaces debootstrap --variant=minbase "$base" "$root.new" "$MIRROR" \
		>"$LOGS/$release.log" 2>&1 || {
		tail -n 20 "$LOGS/$release.log" >&2
		return 1
	}
	[ "$release" != experimental ] || add_experimental "$root.new"
	[ "$release" != arm64 ] || add_arm64 "$root.new" >>"$LOGS/$release.log" 2>&1 || {
		tail -n 20 "$LOGS/$release.log" >&2
		return 1
	}
	mv "$root.new" "$root"
}

# add_experimental ROOT: apt takes nothing from experimental unless it is told to.
add_experimental()
{
	echo "deb $MIRROR experimental main" >"$1/etc/apt/sources.list.d/experimental.list"
	cat >"$1/etc/apt/preferences.d/experimental" <<-END
		Package: src:postgresql-*
		Pin: release a=experimental
		Pin-Priority: 500
	END
}

# add_arm64 ROOT: adds PostgreSQL for arm64, and compilers.
# The shells in the root expand what is in quotes.
# shellcheck disable=SC2016
add_arm64()
{
	local name

	copy_network "$1"
	mkdir -p "$1/etc/postgresql-common/createcluster.d"
	echo 'create_main_cluster = false' >"$1/etc/postgresql-common/createcluster.d/root.conf"
	in_root "$(basename "$1")" sh -euxc '
		dpkg --add-architecture arm64
		apt-get -q update
		DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "$@"' \
		sh "${ARM64_PACKAGES[@]}" || return
	in_root "$(basename "$1")" sh -euxc '
		cd /tmp
		apt-get -q download "$@"
		for package in *.deb; do
			dpkg -x "$package" /
			rm "$package"
		done' sh "${ARM64_UNPACKED[@]}" || return
	for name in "${ARM64_COMPILERS[@]}"; do
		ln -sf "aarch64-linux-gnu-${name#*:}" "$1/usr/bin/${name%:*}" || return
	done
	rm "$1/usr/bin/clang"
	printf '#!/bin/sh\nexec clang-14 --target=aarch64-linux-gnu "$@"\n' >"$1/usr/bin/clang"
	chmod 755 "$1/usr/bin/clang"
}

# Arranges what Debian 13 has of the CUDA toolkit, in its section non-free, as NVIDIA does: nvcc
# for this machine, and headers and libraries for arm64.  A gigabyte is downloaded for that.
# The shell in the root expands what is in quotes.
# shellcheck disable=SC2016
make_arm64_toolkit()
{
	local root=trixie-toolkit

	lock_root trixie
	make_root trixie
	find_mirror
	clean_root trixie "$root"
	shell_in "$root" '
		echo "deb $1 trixie non-free" >/etc/apt/sources.list.d/non-free.list
		dpkg --add-architecture arm64
		apt-get -q update
		cd /tmp
		apt-get -q download nvidia-cuda-toolkit nvidia-cuda-dev:arm64 libcu++-dev
		for package in *.deb; do
			dpkg -x "$package" files
			rm "$package"
		done
		mkdir -p /toolkit/bin /toolkit/nvvm/bin "/toolkit/targets/$2/lib"
		cd files/usr
		mv bin/bin2c bin/cudafe++ bin/fatbinary bin/nvlink bin/ptxas /toolkit/bin
		mv lib/nvidia-cuda-toolkit/bin/nvcc lib/nvidia-cuda-toolkit/bin/crt /toolkit/bin
		mv lib/nvidia-cuda-toolkit/bin/cicc /toolkit/nvvm/bin
		mv lib/nvidia-cuda-toolkit/libdevice /toolkit/nvvm
		mv include "/toolkit/targets/$2"
		mv lib/aarch64-linux-gnu/libcuda*.a "/toolkit/targets/$2/lib"' "$MIRROR" "$SBSA"
	# The paths of nvcc, in its own syntax.
	cat >"$ROOTS/$root/toolkit/bin/nvcc.profile" <<-'END'
		NVVMIR_LIBRARY_DIR = $(_HERE_)/../nvvm/libdevice
		PATH += $(_HERE_)/../nvvm/bin:$(_HERE_):
		INCLUDES += "-I$(_HERE_)/../$(_TARGET_DIR_)/include" $(_SPACE_)
		LIBRARIES =+ $(_SPACE_) "-L$(_HERE_)/../$(_TARGET_DIR_)/lib"
	END
	mv "$ROOTS/$root/toolkit" "$ROOTS/toolkit-arm64"
	rm -rf "${ROOTS:?}/$root"
}

# Copies the settings by which this machine reaches archives.
copy_network()
{
	cp -L /etc/resolv.conf "$1/etc/resolv.conf"
	apt-config dump | grep -E '^Acquire::(https?|Check-|Retries|ForceIPv)' \
		>"$1/etc/apt/apt.conf.d/90-pg-gpusort" || true
}

# Copies the tree as it is now, with what earlier runs have kept in its build/.
copy_tree_into()
{
	local tree=$1$TREE_IN_ROOT

	mkdir -p "$tree"
	find "$tree" -mindepth 1 -maxdepth 1 -not -name build -exec rm -rf {} +
	tar -C "$REPO" --exclude=./.git --exclude=./build --exclude='*.o' \
		--exclude='*.so' --exclude='*.bc' -cf - . | tar -C "$tree" -xf -
}


# ---- Copies of a root for one run ----

# clean_root RELEASE NAME: makes a copy of the release's root.
clean_root()
{
	rm -rf "${ROOTS:?}/$2"
	cp -a --reflink=auto "$ROOTS/$1" "$ROOTS/$2"
	copy_network "$ROOTS/$2"
	# Nothing starts when it is installed, except what a test starts itself.
	printf '#!/bin/sh\nexit 101\n' >"$ROOTS/$2/usr/sbin/policy-rc.d"
	chmod 755 "$ROOTS/$2/usr/sbin/policy-rc.d"
	# Nobody needs the files after a crash.
	echo force-unsafe-io >"$ROOTS/$2/etc/dpkg/dpkg.cfg.d/unsafe-io"
	in_root "$2" apt-get -q update
}

# apt_in ROOT ARGUMENT...
apt_in()
{
	in_root "$1" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o APT::Install-Recommends=false "${@:2}"
}

# shell_in ROOT SCRIPT [ARGUMENT...]: runs lines of sh, until one fails.
shell_in()
{
	in_root "$1" env LC_ALL=C.UTF-8 sh -euxc "$2" sh "${@:3}"
}

STEP_PASSED=

# run_step NAME LOG COMMAND...: runs a function, whose output goes to the log, until a command
# of it fails.  Prints the result, and the end of the log if it is a failure, and sets
# STEP_PASSED to yes or no.  Must not be called in a condition, where the shell would not stop
# at an error.
run_step()
{
	local name=$1 log=$2 status

	shift 2
	say "$name"
	set +e
	(
		trap - EXIT
		set -e
		"$@"
	) >>"$log" 2>&1
	status=$?
	set -e
	if [ "$status" -eq 0 ]; then
		STEP_PASSED=yes
		echo "ok $name"
	else
		STEP_PASSED=no
		tail -n 30 "$log"
		echo "not ok $name"
	fi
}
