#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes the API reference below a folder; its warnings are errors. Exit status 77: there is no doxygen.
#
#   check_reference.sh FOLDER     (in the root of the project)

set -euo pipefail
command -v doxygen >/dev/null || {
  echo "skipped: doxygen is not installed"
  exit 77
}
mkdir -p "$1"
{
  cat docs/Doxyfile
  echo "OUTPUT_DIRECTORY = $1"
} | doxygen -
