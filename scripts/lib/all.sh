# shellcheck shell=bash
#
# all.sh
#	What the scripts share: to be sourced, after `set -euo pipefail`.

# shellcheck source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=server.sh
. "$LIB/server.sh"
# shellcheck source=cluster.sh
. "$LIB/cluster.sh"
# shellcheck source=results.sh
. "$LIB/results.sh"
