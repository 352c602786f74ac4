#!/bin/sh
# Makes the disk of the emulated machines: Debian 12 with its kernel, this checkout set up in it, and its programs built.
#
#   tests/emulated/image.sh [FOLDER [STEP...]]     as root; about half an hour the first time
#
# FOLDER (default build/emulated) gets disk.img, vmlinuz and initrd.img; guest.py starts machines from them. Its root/ is
# kept: a second start brings the checkout and the programs in it up to date and makes disk.img again. STEPs, if only
# some are wanted: packages, checkout, programs, disk.
set -eu

repository=$(cd "$(dirname "$0")/../.." && pwd -P)
# shellcheck source-path=SCRIPTDIR source=../bootstrap/root.sh
. "$repository/tests/bootstrap/root.sh"
need_tools debootstrap git unshare mke2fs
work=${1-$repository/build/emulated}
mkdir -p "$work"
work=$(cd "$work" && pwd -P)
root=$work/root
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- packages checkout programs disk

# What the tests of one and of two machines use, besides what ./elbowroom installs for itself.
packages='linux-image-amd64 initramfs-tools kmod procps util-linux iproute2 iputils-ping pciutils numactl hwloc-nox
  openssh-server openssh-client munge slurm-wlm rdma-core ibverbs-utils libopenmpi-dev openmpi-bin libmpich-dev mpich
  libstarpu-dev libomp-dev gfortran ccache xz-utils'

install_packages() {
  mkdir -p "$root/etc/initramfs-tools/conf.d"
  # A disk of all drivers of Debian takes longer to unpack than an emulated processor needs for all the rest.
  printf 'MODULES=list\nCOMPRESS=gzip\n' >"$root/etc/initramfs-tools/conf.d/emulated"
  printf '%s\n' virtio_pci virtio_blk virtio_net ext4 9p 9pnet_virtio >"$root/etc/initramfs-tools/modules"
  # shellcheck disable=SC2086 # one word for each package is meant
  inside "export DEBIAN_FRONTEND=noninteractive; apt-get -q update && apt-get -q -y install --no-install-recommends $(printf '%s ' $packages)"
}

# The checkout as it is now: tracked files, and those that git does not ignore. What was built before stays.
bring_checkout() {
  find "$root/root/elbowroom" -mindepth 1 -maxdepth 1 ! -name .elbowroom -exec rm -rf {} +
  git -C "$repository" ls-files -z --cached --others --exclude-standard |
    tar -C "$repository" -c --null --ignore-failed-read -T - | tar -C "$root/root/elbowroom" -x --no-same-owner
}

# With half the compiler's time of what users build; agent.sh sets the same flags, so that guests find these programs.
flags="-DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG'"
# shellcheck disable=SC2016 # expanded inside the root
build_programs() {
  inside './elbowroom --version'
  printf '%s\n' "$flags" >"$root/root/elbowroom/.elbowroom/emulated.cmake"
  inside 'export ELBOWROOM_CMAKE="$(cat .elbowroom/emulated.cmake)" CCACHE_DIR=/root/.ccache PYTHONPATH=src
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    .elbowroom/venv/bin/python tests/emulated/build_programs.py'
  # Otherwise each guest compiles them at its first command.
  inside '.elbowroom/venv/bin/python -m compileall -q src'
  inside 'cc -O1 -shared -fPIC -o /root/patient.so tests/emulated/patient.c'
}

make_disk() {
  cp -L "$root/vmlinuz" "$work/vmlinuz"
  cp -L "$root/initrd.img" "$work/initrd.img"
  install -m 755 "$repository/tests/emulated/first.sh" "$root/sbin/emulated-first"
  rm -f "$work/disk.part"
  mke2fs -q -t ext4 -L emulated -d "$root" "$work/disk.part" 12G
  mv "$work/disk.part" "$work/disk.img"
}

# shellcheck disable=SC2317 # reached by the trap
report_failure() {
  status=$?
  [ $status -eq 0 ] || {
    tail -n 15 "$work/image.log" >&2
    say "failed; the whole output is in $work/image.log"
  }
}
trap report_failure EXIT

take_step() {
  say "$1"
  begun=$(date +%s)
  case $1 in
  packages) install_packages ;;
  checkout) bring_checkout ;;
  programs) build_programs ;;
  disk) make_disk ;;
  *) die "there is no step $1" ;;
  esac >>"$work/image.log" 2>&1
  say "$1: $(($(date +%s) - begun)) s"
}

if [ ! -f "$work/root.made" ]; then
  rm -rf --one-file-system "$root"
  make_root
  : >"$work/root.made"
fi
for step in "$@"; do take_step "$step"; done
say "done; python3 tests/emulated/guest.py --image $work -- uname -a"
