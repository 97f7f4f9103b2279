#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# Sourced by the scripts, after install_missing.sh: puts nvcc on PATH, and installs it where there is none.

# find_nvcc FOLDER: where there is no nvcc, nvcc 13.0, CUB and NCCL go from Python's registry into the folder and nowhere else: 500 MB
# of downloads.
find_nvcc() {
  local root
  root=$(realpath -m "$1")/nvidia/cu13
  export PATH="$PATH:/usr/local/cuda/bin:$root/bin"
  ! command -v nvcc >/dev/null || return 0

  install_missing python3:python3 || return 1
  python3 -m pip --version >/dev/null 2>&1 || install_missing pip3:python3-pip || return 1
  echo "installing nvcc into $1"
  python3 -m pip install --quiet --root-user-action ignore --no-deps --target "$1" nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 \
    nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-nvrtc==13.0.88 \
    nvidia-nccl-cu13==2.28.9 || return 1
  # Where nvcc, CMake and programs look for them.
  ln -sfn lib "$root/lib64"
  ln -sf "$root"/../nccl/include/* "$root/include/"
  ln -sf "$root/../nccl/lib/libnccl.so.2" "$root/lib/"
  ln -sf libnccl.so.2 "$root/lib/libnccl.so"
}

# find_newer_nccl FOLDER: sets newer_nccl to a folder with the headers of a release of NCCL that is newer than the toolkit's, from Python's
# registry: a download of 300 MB, of which 1 MB stays.
find_newer_nccl() {
  newer_nccl=$(realpath -m "$1")/nvidia/nccl/include
  [ ! -e "$newer_nccl/nccl_device.h" ] || return 0

  python3 -m pip --version >/dev/null 2>&1 || install_missing pip3:python3-pip || return 1
  echo "installing the headers of NCCL 2.32 into $1"
  timeout 120 python3 -m pip install --quiet --root-user-action ignore --no-deps --target "$1" nvidia-nccl-cu13==2.32.3 || return 1
  rm -rf "${newer_nccl%include}lib"
}
