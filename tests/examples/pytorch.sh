#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# examples/pytorch as users get it: installs the newest torch (some gigabytes), JAX, Lightning, Accelerate, mypy and the package into
# build/torch, with pip alone, and tests them there.
#
#   bash tests/examples/pytorch.sh [TEST...]
#
# TORCH (torch) is what is given to pip, such as torch==2.9.0. Ends with 77, skipped, where it cannot be installed.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=build/torch
[ -e "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/python" -c 'import torch' 2>/dev/null ||
  "$folder/bin/pip" install --quiet "${TORCH:-torch}" numpy jax lightning accelerate mypy || {
  echo "skipped: ${TORCH:-torch} could not be installed"
  exit 77
}
"$folder/bin/pip" install --quiet './examples/pytorch[torch]'
(cd examples/pytorch && ../../"$folder/bin/python" -m mypy)
env -u TERSUM_C_LIBRARY "$folder/bin/python" tests/examples/test_tersum_core.py
env -u TERSUM_C_LIBRARY "$folder/bin/python" tests/examples/test_pytorch.py "$@"
