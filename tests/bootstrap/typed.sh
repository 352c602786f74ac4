#!/bin/sh
# Types every console line of README and docs/guide in a bare Debian 12 root that holds only what ./elbowroom installs,
# as a user without root who may not write the checkout, from another folder (typed.py).
#
#   tests/bootstrap/typed.sh [--keep FOLDER] [--without REGEX] [PAGE...]     as root; about an hour and a half
#
# --keep makes the root in FOLDER, or uses the one that is there. What is tested is the last commit.
set -eu

repository=$(cd "$(dirname "$0")/../.." && pwd -P)
# shellcheck source-path=SCRIPTDIR source=root.sh
. "$repository/tests/bootstrap/root.sh"
need_tools debootstrap git unshare
if [ "${1-}" = --keep ]; then
  work=$2
  shift 2
  mkdir -p "$work"
else
  work=$(mktemp -d /var/tmp/elbowroom-typed.XXXXXX)
  trap 'rm -rf --one-file-system "$work"' EXIT
  trap 'exit 130' INT TERM HUP
fi
root=$work/root
[ -d "$root" ] || make_root
git -C "$repository" archive HEAD | tar -x -C "$root/root/elbowroom"
# The administrator; then only users type.
inside './elbowroom tour --out /var/tmp/tour-$$ && ./elbowroom install'
# The checkout is below root's home, which others may not enter.
inside "chmod 755 /root; id reader >/dev/null 2>&1 || useradd --create-home reader
rm -rf /home/reader/on-*
cd /home/reader
exec setpriv --reuid=reader --regid=reader --init-groups env HOME=/home/reader python3 /root/elbowroom/tests/bootstrap/typed.py $*"
