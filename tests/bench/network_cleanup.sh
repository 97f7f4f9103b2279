#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# bench/network/run.sh removes what it made, also when it is interrupted: while it sets the network up, and while its ranks
# exchange. And then it works again.
#
#   bash tests/bench/network_cleanup.sh BUILD TRANSPORT       status 77: skipped
#
# SIGINT goes to all processes of the run, as from a keyboard, SIGTERM to the script alone.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export BUILD=$1 TRANSPORT=$2 CODEC=none

work=$(mktemp -d)
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
run=0
trap '[ "$run" = 0 ] || kill -TERM "$run" 2>/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  sed 's/^/  /' "$work/output" >&2
  exit 1
}

# Waits for a command to succeed, ten seconds.
wait_for() {
  for ((tries = 0; tries < 200; ++tries)); do
    "$@" && return
    sleep .05
  done
  false
}

links() { ip -o link | sed 's/^[0-9]*: \([^:@]*\).*/\1/' | sort; }
has_namespace() { [ -e "/run/netns/tersum$run-bridge" ]; }
is_exchanging() { grep -q '^codec' "$work/output"; }
has_ended() { ! kill -0 "$run" 2>/dev/null; }
# All that the run starts, in whatever session, has the folder in its environment.
processes() { env -u TMPDIR grep -alsF "TMPDIR=$work" /proc/[0-9]*/environ; }
has_no_process() { ! processes >/dev/null; }

# start STEPS: in a session of its own, whatever signals this shell ignores.
start() {
  env --default-signal=INT,TERM setsid bash bench/network/run.sh 2 20000 "$1" 10 >"$work/output" 2>&1 &
  run=$!
}

# check_that_nothing_is_left WHEN
check_that_nothing_is_left() {
  wait_for has_no_process || fail "$1: processes are left: $(processes | tr '\n' ' ')"
  ! ip netns list | grep "^tersum$run-" || fail "$1: namespaces are left"
  [ "$(links)" = "$links_before" ] || fail "$1: links are left: $(links | tr '\n' ' ')"
  [ -z "$(ls -A "$TMPDIR")" ] || fail "$1: files are left: $(ls -A "$TMPDIR")"
}

links_before=$(links 2>/dev/null)
for signal in INT TERM; do
  for moment in has_namespace is_exchanging; do
    start 1000000
    if ! wait_for "$moment"; then
      ! grep '^skipped' "$work/output" || exit 77
      fail "the run did not start"
    fi
    to=$run
    [ $signal = TERM ] || to=-$run
    kill -$signal -- "$to"
    wait_for has_ended || fail "SIG$signal did not end the run"
    wait "$run"
    status=$?
    [ $status -eq 130 ] || fail "SIG$signal, $moment: status $status"
    check_that_nothing_is_left "SIG$signal, $moment"
  done
done

start 2
wait "$run" || fail "a run that nobody interrupts: status $?"
grep -q '^fp16 ' "$work/output" || fail "a run that nobody interrupts prints no time"
check_that_nothing_is_left "after a whole run"
run=0
