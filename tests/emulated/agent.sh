#!/bin/sh
# Runs in an emulated machine, from the shared folder: names the host, sets addresses, brings the checkout up to date, then
# runs each command that appears in /host/commands. guest.py is the other end.
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
# The programs in the image were built with these (build_programs.py); other flags would build them again.
ELBOWROOM_CMAKE=$(cat /root/elbowroom/.elbowroom/emulated.cmake 2>/dev/null)
export ELBOWROOM_CMAKE
cd /root || exit 1

hostname "$(cat /host/name)"
cat /host/hosts >/etc/hosts
ip link set lo up
while read -r mac address; do
  for link in /sys/class/net/*; do
    [ "$(cat "$link/address")" = "$mac" ] || continue
    ip link set "${link##*/}" up
    [ "$address" = - ] || ip address add "$address" dev "${link##*/}"
  done
done </host/cards
[ ! -f /host/checkout.tar ] || tar -C /root/elbowroom -xf /host/checkout.tar --no-same-owner
python3 /root/elbowroom/tests/emulated/counters.py >/host/counters 2>&1 &
until [ -s /host/counters ]; do sleep 0.1; done

# The status is written last and renamed, so that the other end never reads half of it.
execute() {
  setsid sh "$1.running" >"$1.out" 2>&1 </dev/null
  echo $? >"$1.part"
  mv "$1.part" "$1.status"
}

: >/host/ready
while [ ! -e /host/stop ]; do
  for file in /host/commands/*.sh; do
    [ -e "$file" ] || continue
    name=${file%.sh}
    mv "$file" "$name.running"
    execute "$name" &
  done
  sleep 0.3
done
