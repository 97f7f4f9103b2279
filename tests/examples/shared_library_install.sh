#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# The shared library as it is installed: a client in C finds it by pkg-config and by CMake, and loads it by its SONAME.
#
#   shared_library_install.sh BUILD CLIENT CMAKE

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$3" --install "$1" --component tersum_c --prefix "$folder/first" >/dev/null
mv "$folder/first" "$folder/prefix" # nothing in it names where it was installed
library=$(dirname "$(find "$folder/prefix" -name libtersum_c.so)")
export LD_LIBRARY_PATH=$library
soname=$(objdump -p "$library/libtersum_c.so" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = libtersum_c.so.1 ] && [ -e "$library/$soname" ]
if command -v pkg-config >/dev/null; then
  # shellcheck disable=SC2046
  cc -std=c11 -Wall -Wextra -Werror "$2" -o "$folder/client" $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs tersum_c)
  objdump -p "$folder/client" | grep -q "NEEDED *$soname"
  for preset in two_shot_4 rotated_sat4 fp16; do "$folder/client" "$preset" | grep "ranks equal"; done
else
  echo "there is no pkg-config"
fi
mkdir "$folder/project"
cat >"$folder/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(client C)
find_package(tersum_c REQUIRED)
add_executable(client "$2")
set_property(TARGET client PROPERTY C_STANDARD 11)
target_link_libraries(client PRIVATE tersum::tersum_c)
END
"$3" -S "$folder/project" -B "$folder/build" "-DCMAKE_PREFIX_PATH=$folder/prefix" >/dev/null
"$3" --build "$folder/build" >/dev/null
"$folder/build/client" | grep "ranks equal"
