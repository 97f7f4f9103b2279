#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# What a shared library shows is what its header declares: shared_library_symbols.sh LIBRARY HEADER

set -euo pipefail
defined=$(nm -D --defined-only "$1" | awk '{ print $3 }' | LC_ALL=C sort)
declared=$(grep -o 'TERSUM_C_API [a-z].*' "$2" | grep -o 'tersum_[a-z_]*(' | tr -d '(' | LC_ALL=C sort)
[ -n "$declared" ]
diff <(echo "$declared") <(echo "$defined") || {
  echo "left: declared in $2; right: visible in $1"
  exit 1
}
