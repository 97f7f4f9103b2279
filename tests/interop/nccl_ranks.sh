#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs a program as so many NCCL ranks of this machine, which may share one GPU: nccl_ranks.sh RANKS PROGRAM
# The program gets RANK RANKS FILE. The exit status is 77 when there is no GPU.

set -uo pipefail
ranks=$1 program=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# NCCL refuses two ranks on a GPU before 2.30, unless they seem to be on different hosts; then they talk over sockets. A program
# may take NCCL_HOSTID away again.
export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_MAX_CTAS=4
pids=()
for ((rank = 0; rank < ranks; ++rank)); do
  NCCL_HOSTID=rank$rank "$program" "$rank" "$ranks" "$folder/id" &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
  wait "$pid" || status=$?
done
exit "$status"
