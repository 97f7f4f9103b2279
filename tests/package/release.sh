#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# The example project fetches the release that it names from a clone of the repository. tests/docs/check_pinned.py has what the pages say of it.
#   bash tests/package/release.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

source=$1 build=$2
release=$(sed -n 's/^set(TERSUM_TAG \([0-9a-f]\{40\}\) .*release \([0-9.]*\)".*/\1 \2/p' "$source/examples/consumer/CMakeLists.txt")
commit=${release% *} version=${release#* }
[ -n "$commit" ] || { echo "examples/consumer names no release"; exit 1; }
git -C "$source" cat-file -e "$commit^{commit}" 2>/dev/null || { echo "skipped: $source is no clone with its history"; exit 77; }
rm -rf "$build"
mkdir -p "$build"
git clone --quiet --bare "$source" "$build/repository"
cmake -S "$source/examples/consumer" -B "$build/build" "-DTERSUM_REPOSITORY=file://$build/repository"
cmake --build "$build/build"
"$build/build/consumer" | tee "$build/out"
grep -q "^tersum $version$" "$build/out"
[ "$(git -C "$build/build/_deps/tersum-src" rev-parse HEAD)" = "$commit" ]
