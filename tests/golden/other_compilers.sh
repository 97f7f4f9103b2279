#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Equal bits from other compilers, with other flags, and on another architecture: builds other_compilers.cpp with each that
# this machine has, in the folder given, and compares with the golden digests. Run it in the root of the project.
#
#   bash tests/golden/other_compilers.sh FOLDER          what CTest runs
#   bash tests/golden/other_compilers.sh FOLDER all      g++ with -O2, and with -O3 and contraction, too

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
folder=${1:-build/other_compilers}
mkdir -p "$folder"
launcher=
command -v ccache >/dev/null && launcher=ccache
failed=0 ran=0

# compare NAME RUNNER COMPILER FLAG...
compare() {
  local name=$1 runner=$2 compiler=$3
  shift 3
  if ! command -v "$compiler" >/dev/null || { [ -n "$runner" ] && ! command -v "$runner" >/dev/null; }; then
    echo "skipped: $name, as $compiler${runner:+ or $runner} is missing"
    return
  fi
  local program="$folder/$name"
  # shellcheck disable=SC2086
  if $launcher "$compiler" -std=c++20 -Iinclude -Itests "$@" -c tests/golden/other_compilers.cpp -o "$program.o" &&
    "$compiler" "$@" "$program.o" -o "$program" -pthread &&
    $runner "$program" tests/golden/*.txt; then
    echo "$name: equal"
  else
    echo "FAILED: $name"
    failed=1
  fi
  ran=$((ran + 1))
}

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror)
if [ "${2:-}" = all ]; then
  compare g++_O2 "" g++ -O2 "${warnings[@]}"
  compare g++_native_contract "" g++ -O3 "${warnings[@]}" -march=native -ffp-contract=fast
fi
compare clang_native_contract "" clang++ -O3 -march=native -ffp-contract=fast
compare aarch64_O2 qemu-aarch64 aarch64-linux-gnu-g++ -O2 -ffp-contract=fast -static
# Clang refuses some of what g++ takes for 64-bit ARM, such as registers that it does not know.
! { command -v clang++ && command -v aarch64-linux-gnu-g++; } >/dev/null ||
  clang++ --target=aarch64-linux-gnu -std=c++20 -Iinclude -Itests -fsyntax-only tests/golden/other_compilers.cpp || failed=1
[ "$ran" -gt 0 ] || exit 77
exit "$failed"
