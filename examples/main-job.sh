#!/usr/bin/env bash
# The main job, killed twice: polls a job, walks its pages, and loses nothing to `kill -9`.
# Installs and builds what it needs, and says so before it does. WINDLASS_BIN names a program that is
# already built, next to `windlass-example-server`.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/setup

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

setup 'cc=gcc libc6-dev' make=make
if [ -z "${WINDLASS_BIN:-}" ]; then
    # Only the features that the workflow needs.
    say "Building windlass and the example's server, without optimisation: some three minutes on two cores"
    cargo build --profile demo --no-default-features --features windlass/cli -p windlass -p windlass-example-server
    WINDLASS_BIN=${CARGO_TARGET_DIR:-target}/demo/windlass
fi
windlass=$WINDLASS_BIN
# It is built next to the program.
example_server=$(dirname "$windlass")/windlass-example-server
state=$(mktemp -d)
"$example_server" --port 0 --polls 8 --pages 8 >"$state/server.log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$state"' EXIT
until grep -q listening "$state/server.log"; do sleep 0.05; done
base=$(sed -n 's/^listening on //p' "$state/server.log")

# How many requests the server has seen.
requests() {
    exec 3<>"/dev/tcp/$(sed "s|http://||; s|:|/|" <<<"$base")"
    printf 'GET /log HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
    tr ',{' '\n\n' <&3 | sed -n 's/.*"total":\([0-9]*\).*/\1/p'
}
# Kills the process $run as soon as the server has received this number of requests.
kill_after() {
    until [ "$(requests)" -ge "$1" ]; do sleep 0.1; done
    kill -9 "$run"
    wait "$run" 2>/dev/null || true
}

say "windlass run examples/main-job.yaml"
"$windlass" run examples/main-job.yaml --state "$state/store" --id main-job -i base="$base" &
run=$!
kill_after 4
say "kill -9, while it polls"
"$windlass" status main-job --state "$state/store"

say "windlass resume: it continues with the next poll"
"$windlass" resume main-job --state "$state/store" &
run=$!
kill_after 13
say "kill -9, while it walks the pages"
"$windlass" status main-job --state "$state/store"

say "windlass resume: it continues with the next page, to the end"
"$windlass" resume main-job --state "$state/store" | tee "$state/result.json"

say "What the server saw: 9 polls and 8 pages, and at most one repetition a kill"
total=$(requests)
echo "$total requests"
[ "$total" -ge 17 ] && [ "$total" -le 19 ]
tr -d ' \n' <"$state/result.json" | grep -q '"polls":9,"pages":8,"rows":24'
say "Nothing was lost."
