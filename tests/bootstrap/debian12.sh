#!/bin/sh
# The README's two commands on a bare Debian 12, in a root made by debootstrap and thrown away afterwards.
#
#   tests/bootstrap/debian12.sh [--keep] [COMMAND...]     as root; about 15 minutes
#
# COMMANDs replace './elbowroom run quick' and './elbowroom test'; --keep leaves the root where it is. What is tested is
# the last commit. Packages come from where this machine takes its own: the mirror is the one of its apt sources (or
# MIRROR=URL), and its proxy, its certificates and its pip configuration are copied.
set -eu

suite=bookworm
repository=$(cd "$(dirname "$0")/../.." && pwd -P)
keep=
if [ "${1-}" = --keep ]; then
  keep=yes
  shift
fi
[ $# -gt 0 ] || set -- './elbowroom run quick' './elbowroom test'

say() { printf 'bootstrap: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

[ "$(id -u)" -eq 0 ] || die 'only root can make a Debian root'
for tool in debootstrap git unshare; do
  command -v "$tool" >/dev/null || die "$tool is missing; on Debian: apt-get install debootstrap git util-linux"
done

# The mirror of this machine's own apt sources for the suite.
own_mirror() {
  # shellcheck disable=SC2016 # apt expands these, not the shell
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' 2>/dev/null |
    awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }'
}
mirror=${MIRROR:-$(own_mirror)}
[ -n "$mirror" ] || die "apt here knows no mirror of $suite; name one: MIRROR=URL $0"

# Not below /tmp: that may be small, may forbid device files, and is what the tests in the root write to themselves.
work=$(mktemp -d /var/tmp/elbowroom-bootstrap.XXXXXX)
root=$work/root
# Mounts and processes need no cleaning up: they live in namespaces that end with the command that was run in them.
# shellcheck disable=SC2317 # reached by the trap
clean_up() {
  if [ -n "$keep" ]; then say "the root is kept: $root"; else rm -rf --one-file-system "$work"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

copy() {
  for file in "$@"; do
    if [ -e "$file" ]; then
      mkdir -p "$root$(dirname "$file")"
      cp -aL "$file" "$root$file"
    fi
  done
}

make_root() {
  say "making a $suite root from $mirror"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
    tail -n 5 "$work/debootstrap.log" >&2
    die 'debootstrap failed'
  }
  copy /etc/resolv.conf /etc/hosts /etc/pip.conf /usr/local/share/ca-certificates
  # Updates and security from the same sources, instead of debootstrap's list; lists signed by keys of others are of no
  # use in there.
  if grep -qs debian-archive-keyring /etc/apt/sources.list /etc/apt/sources.list.d/*; then
    rm -f "$root/etc/apt/sources.list"
  fi
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    if grep -qs debian-archive-keyring "$list"; then copy "$list"; fi
  done
  for conf in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    if grep -qsi 'proxy' "$conf"; then copy "$conf"; fi
  done
  # Installed services must not start: this is not a machine of its own.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  git clone --quiet --no-hardlinks "$repository" "$root/root/elbowroom"
  [ -z "$(git -C "$repository" status --porcelain)" ] || say 'what is not committed is not tested'
}

# Runs a shell line in the clone inside the root, with nothing of this machine's environment but the way to packages.
inside() {
  environment=$(env | grep -E '^((https?|no|ftp)_proxy|(HTTPS?|NO)_PROXY|PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|CERT|DEFAULT_TIMEOUT))=' || true)
  printf '%s\n' "$environment" >"$work/environment"
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount --pid --fork --kill-child sh -eu -c '
    root=$1 line=$2 file=$3
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    set -- HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    while IFS= read -r variable; do [ -z "$variable" ] || set -- "$@" "$variable"; done <"$file"
    exec env -i "$@" chroot "$root" sh -c "cd /root/elbowroom && $line" </dev/null
  ' sh "$root" "$1" "$work/environment"
}

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
