#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the Gloo example as three processes: gloo_all_reduce.sh PROGRAM

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ranks=()
for rank in 0 1 2; do
  "$1" $rank 3 "$folder" &
  ranks+=($!)
done
for rank in "${ranks[@]}"; do wait "$rank"; done
