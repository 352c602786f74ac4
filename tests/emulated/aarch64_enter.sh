#!/bin/sh
# Runs a command with the arm64 root made ready for chroot: aarch64 programs start, and /proc, /sys, /dev, the checkout and
# the folder of the builds are where they are outside. Used by aarch64.sh.
#
#   aarch64_enter.sh REPOSITORY FOLDER COMMAND...
#
# Where this machine starts aarch64 programs by itself (package qemu-user-static under systemd), that is used. Elsewhere
# the translator is registered in a user namespace (Linux 6.7 and newer), and is gone with it: nothing of the machine
# is changed.
set -eu

# The first 20 bytes of an aarch64 executable, and which of their bits count. F: the translator is opened now, so that it
# is found from within the root; O and C: it gets the program opened, with its rights.
register=':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:OCF'

prepare() {
  repository=$1 work=$2
  shift 2
  root=$work/root
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  for folder in "$repository" "$work"; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
  done
  for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
  exec "$@"
}

case $1 in
--registered)
  shift
  prepare "$@"
  ;;
--register)
  shift
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  printf '%s' "$register" >/proc/sys/fs/binfmt_misc/register
  prepare "$@"
  ;;
esac

if [ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
  exec unshare --mount "$0" --registered "$@"
fi
# The user namespace's numbers of users are this one's; only a process outside may say so.
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --user --mount sh -c 'until [ "$(id -u)" -eq 0 ]; do sleep 0.1; done; exec "$@"' sh "$0" --register "$@" &
child=$!
trap 'kill "$child" 2>/dev/null' INT TERM HUP
outside=$(readlink /proc/self/ns/user)
until [ "$(readlink "/proc/$child/ns/user")" != "$outside" ]; do sleep 0.1; done
printf '0 0 65536\n' >"/proc/$child/gid_map"
printf '0 0 65536\n' >"/proc/$child/uid_map"
wait "$child"
