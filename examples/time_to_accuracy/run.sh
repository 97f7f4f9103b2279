#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Time to accuracy on a Debian 12 machine: installs what is missing, builds the shared library, trains with all codecs and
# draws the results. Arguments go to run.py (--help).
#
#   bash examples/time_to_accuracy/run.sh --quick      three minutes, once the library is built
#   bash examples/time_to_accuracy/run.sh              everything: a quiet machine, many hours; can be interrupted
#
# PYTHON names a Python with torch, Debian's by default; TERSUM_C_LIBRARY the shared library, if it is not to be built.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/install_missing.sh
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import torch' 2>/dev/null || install_missing /usr/lib/python3/dist-packages/torch:python3-torch
"$python" -c 'import matplotlib' 2>/dev/null || install_missing /usr/lib/python3/dist-packages/matplotlib:python3-matplotlib ||
  echo "there will be no picture"
install_missing ip:iproute2 || echo "bandwidth cannot be limited"
if [ -z "${TERSUM_C_LIBRARY:-}" ]; then
  install_missing g++:g++ cmake:cmake ninja:ninja-build
  build=build/pytorch
  mkdir -p "$build"
  echo "building $build/lib/libtersum_c.so: some minutes the first time" >&2
  { cmake -S . -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
      -DCMAKE_BUILD_TYPE=Release -DTERSUM_CUDA=OFF -DTERSUM_TRANSPORTS=OFF -DTERSUM_BUILD_TESTS=OFF -DTERSUM_BUILD_BENCH=OFF &&
      cmake --build "$build" --target tersum_c --parallel "$(nproc)"; } >"$build/build.log" 2>&1 || {
    cat "$build/build.log" >&2
    exit 1
  }
  TERSUM_C_LIBRARY=$PWD/$build/lib/libtersum_c.so
fi
export TERSUM_C_LIBRARY PYTHONPATH=examples/pytorch${PYTHONPATH:+:$PYTHONPATH}
exec "$python" examples/time_to_accuracy/run.py "$@"
