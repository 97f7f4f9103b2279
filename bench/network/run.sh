#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# A network of limited bandwidth on one machine: each rank is a process in a network namespace, whose egress a token
# bucket limits; a bridge in one more namespace connects them. Prints the time of an exchange with several codecs.
#
#   bash bench/network/run.sh [--all] [ranks [coordinates [steps [rate...]]]]     (default: 4 25000000 15 1000)
#
# Rates are in Mbit/s, 0 for no limit. There are seventeen codecs; --all first builds the program with every preset, in
# build/network, which compiles for some minutes. PIECES (12) are what a gradient is cut into for the overlapped exchange, or, under a
# sharded codec, each rank's shard; CODEC names codecs to run besides fp16, with commas between; TRANSPORT is gloo (default) or mpi, Open
# MPI's. validate.py sets CORES and COPY_RATE, see exchange.hpp, and prints JSON: then each rank stays on one of so many cores, in turn.
# BURST (256kb) is the size of the token bucket, of which as much passes at once. Where the machine has other work, put `chrt -r 1` in
# front: the ranks then have real-time priority. Needs root, iproute2, util-linux and, without --all,
# tersum.bench.network.* (BUILD, default build/cpu). Where namespaces are not allowed it says so and ends with 77. Nothing
# is made in the root namespace; everything is removed at the end, also when interrupted.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

all=false
[ "${1:-}" != --all ] || { all=true; shift; }
ranks=${1:-4} coordinates=${2:-25000000} steps=${3:-15}
shift $(($# < 3 ? $# : 3))
rates=("$@")
[ ${#rates[@]} -gt 0 ] || rates=(1000)
transport=${TRANSPORT:-gloo}
build=${BUILD:-build/cpu}
$all && build=build/network
program=$(realpath -m "$build/bin/tersum.bench.network.$transport")
pieces=${PIECES:-12}
codec=(${CODEC:+"$CODEC"})
[ -z "${CORES:-}" ] || codec=("${CODEC:-}" "$CORES" "${COPY_RATE:-0}")
readonly name=tersum$$ # of the namespaces; unique to this run

skip() {
  echo "skipped: $*"
  exit 77
}

command -v ip >/dev/null && command -v tc >/dev/null || skip "ip and tc are not installed (iproute2)"
folder=''
clean_up() {
  trap - EXIT
  trap '' INT TERM HUP # some interrupt again at once
  for namespace in $(ip netns list 2>/dev/null | sed -n "s/^\($name-[a-z0-9]*\).*/\1/p"); do
    ip netns pids "$namespace" | xargs -r kill -KILL 2>/dev/null # all that was started is in one
    ip netns del "$namespace"
  done
  wait 2>/dev/null
  [ -z "$folder" ] || rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# In a chroot and in some containers one can be made, and nothing can be run in it.
{ ip netns add "$name-probe" && ip netns exec "$name-probe" true; } 2>/dev/null || skip "network namespaces are not allowed here"
folder=$(mktemp -d)
export TMPDIR=$folder # for what Open MPI leaves
if $all; then
  mkdir -p "$build"
  cmake --preset cpu -B "$build" -DTERSUM_BUILD_TESTS=OFF -DTERSUM_BUILD_EXAMPLES=OFF -DTERSUM_BENCH_PRESETS=all \
    >"$build/build.log" 2>&1 &&
    cmake --build "$build" --parallel "$(nproc)" --target "tersum.bench.network.$transport" >>"$build/build.log" 2>&1 || {
    tail -n 40 "$build/build.log" >&2
    exit 1
  }
fi
[ -x "$program" ] || skip "$program is not built ($transport is needed)"

# The core of a rank: so many of those that this script may use (CORES, or all) in turn.
core_of() {
  local all=() range
  for range in $(taskset -pc $$ | sed 's/.*: //; s/,/ /g'); do
    mapfile -t -O ${#all[@]} all < <(seq "${range%-*}" "${range#*-}")
  done
  echo "${all[$(($1 % ${CORES:-${#all[@]}}))]}"
}

# A core as the kernel writes sets of them: 32 in a word of hexadecimal digits, the highest first.
mask_of() {
  printf '%x' $((1 << $1 % 32))
  for ((word = $1 / 32; word > 0; --word)); do printf ',00000000'; done
}

# The egress of every rank, with a queue of half a second.
limit() {
  for ((k = 0; k < ranks; ++k)); do
    ip netns exec "$name-$k" tc qdisc del dev eth0 root 2>/dev/null
    [ "$1" = 0 ] || ip netns exec "$name-$k" tc qdisc add dev eth0 root tbf rate "$1mbit" burst "${BURST:-256kb}" latency 500ms ||
      skip "no token bucket on this kernel"
  done
}

(
  set -e
  ip netns add "$name-bridge"
  ip netns exec "$name-bridge" ip link add br0 type bridge
  ip netns exec "$name-bridge" ip link set br0 up
  for ((k = 0; k < ranks; ++k)); do
    ip netns add "$name-$k"
    ip netns exec "$name-bridge" ip link add "v$k" type veth peer name eth0 netns "$name-$k"
    ip netns exec "$name-bridge" ip link set "v$k" master br0 up
    ip netns exec "$name-$k" ip addr add "10.77.0.$((k + 1))/24" dev eth0
    ip netns exec "$name-$k" ip link set lo up
    # Segments of 64 KiB do not fit the bucket.
    ip netns exec "$name-$k" ip link set eth0 up gso_max_size 16384
    # Reno on every machine: always there, and at once at full rate where nothing is lost. BBR, where it is the default, is not.
    # Socket buffers that hold what is sent: otherwise the network waits while another thread computes on a rank's core.
    ip netns exec "$name-$k" bash -c 'cd /proc/sys/net/ipv4 && echo reno >tcp_congestion_control && echo 0 >tcp_slow_start_after_idle &&
      echo 4096 4194304 16777216 | tee tcp_wmem >tcp_rmem'
    # One core handles what goes to and from a rank: two would overtake each other, and TCP takes what comes late for lost and sends at
    # half of the rate for seconds.
    mask=$(mask_of "$(core_of "$k")")
    ip netns exec "$name-$k" bash -c "echo $mask >/sys/class/net/eth0/queues/rx-0/rps_cpus" 2>/dev/null || true
    ip netns exec "$name-bridge" bash -c "echo $mask >/sys/class/net/v$k/queues/rx-0/rps_cpus" 2>/dev/null || true
  done
) || skip "the namespaces could not be connected"

# One process, or mpirun, for each rank of Gloo or all of MPI.
start() {
  if [ "$transport" = gloo ]; then
    for ((k = 0; k < ranks; ++k)); do
      on=(); [ -z "${CORES:-}" ] || on=(taskset -c "$(core_of "$k")")
      OMP_NUM_THREADS=1 ip netns exec "$name-$k" "${on[@]}" "$program" "$k" "$ranks" "$folder/$1" "10.77.0.$((k + 1))" \
        "$coordinates" "$steps" "$1" "$pieces" "${codec[@]}" &
    done
    return
  fi
  # Open MPI starts the other ranks by "ssh ADDRESS COMMAND"; names of their own keep them from sharing memory. Its threads wait in
  # loops, for each other too: on a core that they share none may interrupt another (SCHED_BATCH). And what they send must not wait for
  # a receiver who looks seldom: all messages are eager.
  local cores=() most=$((32 << 20))
  [ -z "${CORES:-}" ] || for ((k = 0; k < ranks; ++k)); do cores+=("$(core_of "$k")"); done
  printf '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nrank=$((${1##*.} - 1))\nhost=%s-$rank\ncores=(%s)\nshift\n%s\n' \
    "$name" "${cores[*]}" \
    'exec ip netns exec "$host" ${cores:+chrt -b 0 taskset -c ${cores[rank]}} unshare --uts bash -c "hostname $host; $*"' >"$folder/ssh"
  chmod +x "$folder/ssh"
  local hosts
  hosts=$(for ((k = 1; k <= ranks; ++k)); do printf '%s10.77.0.%d:1' "$([ "$k" = 1 ] || echo ,)" "$k"; done)
  OMP_NUM_THREADS=1 "$folder/ssh" 10.77.0.1 exec mpirun --allow-run-as-root --host "$hosts" -np "$ranks" \
    --map-by node --bind-to none --mca plm_rsh_agent "$folder/ssh" --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_if_include eth0 --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0 \
    --mca mpi_yield_when_idle 1 --mca btl_tcp_eager_limit "$most" --mca btl_tcp_rndv_eager_limit "$most" \
    --mca btl_tcp_max_send_size "$most" --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4 \
    "$program" "$coordinates" "$steps" "$1" "$pieces" "${codec[@]}" </dev/null &
}

status=0
for rate in "${rates[@]}"; do
  limit "$rate"
  echo "== $ranks ranks, $coordinates coordinates, $rate Mbit/s over $transport, $pieces pieces, median of $steps"
  mkdir -p "$folder/$rate"
  start "$rate"
  for process in $(jobs -p); do wait "$process" || status=1; done
done
exit $status
