#!/bin/sh
# The first process of an emulated machine: mounts what every system has, and the folder that guest.py shares; what
# happens then is said there (agent.sh), so that the disk need not be made again for it.
mkdir -p /dev/pts /dev/shm /host
# The initial RAM disk has mounted the first of these.
for line in 'proc proc /proc' 'sysfs sysfs /sys' 'devtmpfs dev /dev' 'devpts devpts /dev/pts' \
  'tmpfs tmpfs /run' 'tmpfs tmpfs /dev/shm' 'tmpfs tmpfs /tmp' 'cgroup2 cgroup2 /sys/fs/cgroup'; do
  # shellcheck disable=SC2086 # three words are meant
  set -- $line
  mkdir -p "$3"
  mountpoint -q "$3" || mount -t "$1" "$2" "$3"
done
chmod 1777 /tmp /dev/shm
modprobe 9pnet_virtio
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none host /host
sh /host/agent.sh
sync
echo o >/proc/sysrq-trigger
sleep 60
