# shellcheck shell=bash
#
# all.sh
#	What the scripts share: to be sourced, after `set -euo pipefail`.

lib=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
. "$lib/common.sh"
# shellcheck source=server.sh
. "$lib/server.sh"
# shellcheck source=cluster.sh
. "$lib/cluster.sh"
# shellcheck source=regression.sh
. "$lib/regression.sh"
# shellcheck source=results.sh
. "$lib/results.sh"
unset lib
