#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# The example project fetches a release by its tag, as it says: from a clone of the repository that has the tag.
#   bash tests/package/tag.sh SOURCE_FOLDER BUILD_FOLDER TAG
set -euo pipefail

source=$1 build=$2 tag=$3
git -C "$source" rev-parse HEAD >/dev/null 2>&1 || { echo "skipped: $source is no clone"; exit 77; }
rm -rf "$build"
mkdir -p "$build"
git clone --quiet --bare "$source" "$build/repository"
git -C "$build/repository" tag --force "$tag" "$(git -C "$source" rev-parse HEAD)" >/dev/null
cmake -S "$source/examples/consumer" -B "$build/build" "-DTERSUM_REPOSITORY=file://$build/repository"
cmake --build "$build/build"
"$build/build/consumer" | tee "$build/out"
grep -q "^tersum ${tag#v}$" "$build/out"
git -C "$build/build/_deps/tersum-src" describe --tags --exact-match --match "$tag"
