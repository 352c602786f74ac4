#!/bin/sh
# A bare Debian 12 root made by debootstrap, and commands in it. Scripts source this file; they set `repository` (a
# checkout) and `work` (a folder; the root is work/root) before they call make_root.
#
# Packages come from where this machine takes its own: the mirror is the one of its apt sources (or MIRROR=URL), and its
# proxy, its certificates and its pip configuration are copied.
# shellcheck disable=SC2154 # repository and work are the caller's

suite=bookworm

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() {
  say "$*"
  exit 1
}

need_tools() {
  [ "$(id -u)" -eq 0 ] || die 'only root can make a Debian root'
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "$tool is missing; on Debian: apt-get install debootstrap git util-linux e2fsprogs"
  done
}

# The mirror of this machine's own apt sources for the suite.
own_mirror() {
  # shellcheck disable=SC2016 # apt expands these, not the shell
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' 2>/dev/null |
    awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }'
}

copy() {
  for file in "$@"; do
    if [ -e "$file" ]; then
      mkdir -p "$root$(dirname "$file")"
      cp -aL "$file" "$root$file"
    fi
  done
}

make_root() {
  root=$work/root
  mirror=${MIRROR:-$(own_mirror)}
  [ -n "$mirror" ] || die "apt here knows no mirror of $suite; name one: MIRROR=URL $0"
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
