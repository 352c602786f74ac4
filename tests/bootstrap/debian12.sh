#!/bin/sh
# The README's two commands on a bare Debian 12, in a root made by debootstrap and thrown away afterwards.
#
#   tests/bootstrap/debian12.sh [--keep] [COMMAND...]     as root; about 15 minutes
#
# COMMANDs replace './elbowroom run quick' and './elbowroom test'; --keep leaves the root where it is. What is tested is
# the last commit. Where packages come from: root.sh.
set -eu

repository=$(cd "$(dirname "$0")/../.." && pwd -P)
# shellcheck source-path=SCRIPTDIR source=root.sh
. "$repository/tests/bootstrap/root.sh"
keep=
if [ "${1-}" = --keep ]; then
  keep=yes
  shift
fi
[ $# -gt 0 ] || set -- './elbowroom run quick' './elbowroom test'
need_tools debootstrap git unshare

# Not below /tmp: that may be small, may forbid device files, and is what the tests in the root write to themselves.
work=$(mktemp -d /var/tmp/elbowroom-bootstrap.XXXXXX)
# Mounts and processes need no cleaning up: they live in namespaces that end with the command that was run in them.
# shellcheck disable=SC2317 # reached by the trap
clean_up() {
  if [ -n "$keep" ]; then say "the root is kept: $root"; else rm -rf --one-file-system "$work"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# Seconds from the first command to the finished probe, which is what a first start waits for.
report_setup() {
  probe=$(find "$root/root/elbowroom/.elbowroom/probes" -name probe -type f 2>/dev/null | head -n 1)
  [ -z "$probe" ] || say "set-up took $(($(stat -c %Y "$probe") - started)) s, the compiled probe included"
}

make_root
started=$(date +%s)
failed=0
for line in "$@"; do
  say "$line"
  begun=$(date +%s)
  status=0
  inside "$line" || status=$?
  [ "$line" != "$1" ] || report_setup
  # 3 means measured, on a machine too noisy to trust: the set-up works.
  case $status in
  0 | 3) say "$line: exit code $status after $(($(date +%s) - begun)) s" ;;
  *)
    say "$line: FAILED with exit code $status after $(($(date +%s) - begun)) s"
    failed=1
    ;;
  esac
done
exit $failed
