#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# Sourced by the scripts: installs what is missing on a Debian machine.

# find_matplotlib: sets drawing_python to a Python that has matplotlib, Debian's where that in the path has none.
find_matplotlib() {
  for drawing_python in python3 /usr/bin/python3; do
    "$drawing_python" -c 'import matplotlib' 2>/dev/null && return 0
  done
  install_missing /usr/lib/python3/dist-packages/matplotlib:python3-matplotlib &&
    "$drawing_python" -c 'import matplotlib'
}

# install_missing <what>:<package>...: installs the packages whose command or file (when it starts with /) is missing.
install_missing() {
  local packages=() what
  for pair in "$@"; do
    what=${pair%%:*}
    if [[ $what == /* ]]; then
      [ -e "$what" ] || packages+=("${pair#*:}")
    else
      command -v "$what" >/dev/null || packages+=("${pair#*:}")
    fi
  done
  [ ${#packages[@]} -eq 0 ] && return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "missing: ${packages[*]} (needs root or sudo to install)" >&2; return 1; }
    as_root=(sudo)
  fi
  command -v apt-get >/dev/null || { echo "missing, and there is no apt-get: ${packages[*]}" >&2; return 1; }
  echo "installing ${packages[*]}"
  # Lists of packages that a call before this one has read are read no more.
  [ -n "${lists_are_read:-}" ] || { "${as_root[@]}" apt-get update -qq && lists_are_read=yes; }
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      "${packages[@]}" </dev/null >/dev/null; then
    echo "apt-get could not install ${packages[*]}" >&2
    return 1
  fi
}
