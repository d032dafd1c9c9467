#!/usr/bin/env bash
# The main job, killed twice: polls a job, walks its pages, and loses nothing to `kill -9`.
# Builds what it needs; wants nothing but a Rust toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "Building windlass and the example's server"
cargo build --release --quiet --bin windlass --example server
windlass=target/release/windlass
state=$(mktemp -d)
target/release/examples/server --port 0 --polls 8 --pages 8 >"$state/server.log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$state"' EXIT
until grep -q listening "$state/server.log"; do sleep 0.05; done
base=$(sed -n 's/^listening on //p' "$state/server.log")

say "windlass run examples/main-job.yaml"
"$windlass" run examples/main-job.yaml --state "$state/store" --id main-job -i base="$base" &
run=$!
sleep 2
say "kill -9, while it polls"
kill -9 "$run"
wait "$run" 2>/dev/null || true
"$windlass" status main-job --state "$state/store"

say "windlass resume: it goes on with the next poll"
"$windlass" resume main-job --state "$state/store" &
run=$!
sleep 4
say "kill -9, while it walks the pages"
kill -9 "$run"
wait "$run" 2>/dev/null || true
"$windlass" status main-job --state "$state/store"

say "windlass resume: it goes on with the next page, to the end"
"$windlass" resume main-job --state "$state/store" | tee "$state/result.json"

say "What the server saw: 9 polls and 8 pages, and at most one repetition a kill"
exec 3<>"/dev/tcp/$(sed "s|http://||; s|:|/|" <<<"$base")"
printf 'GET /log HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
total=$(tr ',{' '\n\n' <&3 | sed -n 's/.*"total":\([0-9]*\).*/\1/p')
echo "$total requests"
[ "$total" -ge 17 ] && [ "$total" -le 19 ]
tr -d ' \n' <"$state/result.json" | grep -q '"polls":9,"pages":8,"rows":24'
say "Nothing was lost."
