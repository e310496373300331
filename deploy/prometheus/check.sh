#!/bin/sh
# Checks the alert rules, their tests, and the metrics of a real run with promtool. `make metrics` calls it
# from the root of the tree, after it has built bin/.
set -eu
tool=$(command -v promtool || true)
work=$(mktemp -d)
node=
trap 'test -z "$node" || kill "$node"; rm -rf "$work"' EXIT
if test -z "$tool"; then # Debian's package has it; nothing is installed
	(cd "$work" && apt-get download -q prometheus && dpkg -x prometheus_*.deb .)
	tool=$work/usr/bin/promtool
fi
(cd deploy/prometheus && "$tool" check rules alerts.yml && "$tool" test rules alerts_test.yml)

mkdir "$work/dir"
echo "2026-01-02T03:04:05Z ERROR request 1 failed" >"$work/dir/app.log"
bin/troupe-node --store-dir "$work/state" --nats-port -1 --durability lazy --http 127.0.0.1:0 --root "$work/dir" -o json >"$work/ready" 2>"$work/log" &
node=$!
n=0
until grep -q '"http"' "$work/ready"; do
	n=$((n + 1))
	test "$n" -lt 300 || { cat "$work/log"; exit 1; }
	sleep 0.1
done
url=$(sed 's/.*"http":"\([^"]*\)".*/\1/' "$work/ready")
bin/troupe run --store-dir "$work/state" --dir "$work/dir" -m builtin/scout "Say what failed" >/dev/null
printf 'header = "Authorization: Bearer %s"\n' "$(cat "$work/state/http.token")" >"$work/curl"
curl -sf -K "$work/curl" "$url/metrics" >"$work/metrics"
grep -q '^troupe_runs_finished_total{' "$work/metrics"
"$tool" check metrics <"$work/metrics"
echo "$(grep -c '^# HELP' "$work/metrics") metrics of a real run, the rules and their tests are accepted"
