# Targets for those who work on troupe. `go test ./...` needs none of them.
DURATION ?= 10m
KILLS ?= 50
SEEDS ?= 1000000
TREES ?= 1000000

RUNS ?= 300
NODES ?= 3
CHAOS ?=
BENCH ?= -rounds 5
TTL ?= 3s

.PHONY: lint race build licenses check cold sim rights verify exhaustive exhaustive-1 exhaustive-2 exhaustive-3 exhaustive-4 exhaustive-5 mutants chaos cluster purses brokers partitions power full absences rots trees bombs watchers slow fuzz fuzz-doors fuzz-files bench bench-peers e2e screen eval picture attacks damage collector page browser browser-tools page-bench page-pictures
build:    ; CGO_ENABLED=0 go build -o bin/troupe ./cmd/cli && CGO_ENABLED=0 go build -o bin/troupe-node ./cmd/node && cp LICENSE NOTICE THIRD_PARTY_LICENSES bin/
# after a change of go.mod: the terms that are shipped with the binaries, and the list of what is linked
licenses: ; go run -C build ./licenses "$$PWD"
LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# .goreleaser.yaml is valid; pinned to the newest release that Go 1.26 builds
release-check: ; go run github.com/goreleaser/goreleaser/v2@v2.16.0 check
lint:     ; $(LINT) run ./...
check:    ; bash .ci/run
# what a newcomer waits for, modules at hand
cold:     ; d=$$(mktemp -d) && s=$$(date +%s) && GOCACHE=$$d CGO_ENABLED=0 go build -o $$d/ ./cmd/cli ./cmd/node && echo "$$(($$(date +%s) - s)) s" && ls -l $$d/cli $$d/node; rm -rf $$d
sim:      ; go test ./test/sim -run TestSeeds -count=1 -timeout 0 -sim.seeds=$(SEEDS)
# E6 in random trees of agents that operators narrow at work; `go test` grows 3,000.
rights:   ; GOGC=400 go test ./supervisor -run '^TestRightsOnlyShrinkDownwards$$' -count=1 -timeout 0 -v -rights.trees=$(TREES)
# The logs of 10,000 simulated runs without damage by the rules of internal/verify, of which `go test` takes a part; 6 minutes.
verify:   ; go test ./test/sim -run TestSimulatedRunsKeepTheRules -count=1 -timeout 0 -v -verify.seeds=10000
# What `go test ./...` samples, in full: each stream of a provider is cut after every byte, and so on.
exhaustive: exhaustive-1 exhaustive-2 exhaustive-3 exhaustive-4 exhaustive-5
exhaustive-1: ; go test -count=1 -timeout 20m ./model/anthropic ./model/gemini -wiretest.cuts=-1
exhaustive-2: ; go test -count=1 ./internal/investigator -scout.files=5000 -scout.limits=1 && go test -count=1 ./internal/toolset/builtin -run '^TestAttack' -builtin.all && $(MAKE) collector
exhaustive-3: ; go test -count=1 ./internal/node -run RandomPoints -node.forks=50 && go test -count=1 ./agent -agent.every=1 && go test -count=1 ./internal/process -run TestAttack -proc.looks=200
exhaustive-4: ; $(MAKE) damage && go test -count=1 ./internal/logstore/local -local.all
exhaustive-5: ; go test -count=1 -timeout 20m ./model/openai -wiretest.cuts=-1
mutants:  ; go run ./test/sim/mutants
chaos:    ; go run ./test/chaos -kills $(KILLS)
	go run ./test/chaos -nodes $(NODES) -ttl $(TTL) -runs $(RUNS) -kills 4 -points 4 -drains 1 -cancels 10 -for $(DURATION)
	go run ./test/chaos -nodes $(NODES) -ttl $(TTL) -runs $(RUNS) -kills 20 -points 10 -tokens 9000
	go run ./test/chaos -nodes 5 -ttl $(TTL) -kills 0 -zombies 10 -gap 500ms
	go run ./test/chaos -nodes $(NODES) -ttl $(TTL) -poison
	go run ./test/chaos -nodes $(NODES) -leaks 2000
	go run ./test/chaos -nodes $(NODES) -ttl 20s -busy 330 -drains 1
	go run ./test/chaos -nodes $(NODES) -ttl 20s -busy 1000
	go run ./test/chaos -nodes $(NODES) -ttl 2s -runs 20 -kills 3 -at-once 12 -control
cluster:  ; go run ./test/chaos -nodes $(NODES) -ttl $(TTL) -runs $(RUNS) -kills 2 -stops 1 -drains 1 -for $(DURATION)
brokers:  ; go run ./test/chaos -nodes $(NODES) -kills 0 -servers 3 -leaders 20 -every 30s -ttl 20s -runs $(RUNS)
partitions: ; go run ./test/chaos -nodes $(NODES) -kills 0 -servers 3 -cuts 30 -every 10s -ttl 10s -runs $(RUNS)
# power needs root, loop devices and mkfs.ext4; where they are not it says that it did not run (CHAOS=-must: and fails).
power:    ; go run ./test/chaos -power 20 -servers 1 -every 3s $(CHAOS) && go run ./test/chaos -power 5 -servers 1 -every 3s -lazy $(CHAOS) && \
	go run ./test/chaos -power 20 -servers 3 -every 6s $(CHAOS) && go run ./test/chaos -power 5 -servers 3 -every 6s -lazy $(CHAOS) && \
	go run ./test/chaos -nodes $(NODES) -kills 0 -servers 3 -power 10 -shapes 3 -every 15s -ttl 20s -runs $(RUNS) $(CHAOS)
trees:    ; go run ./test/chaos -nodes $(NODES) -servers 3 -trees 5 -ttl 5s
# After each play its control: what its judge looks for is done, and must be found.
absences: ; go run ./test/chaos -absences 8 && go run ./test/chaos -absences 2 -control
rots:     ; go run ./test/chaos -rots 500
bombs:    ; go run ./test/chaos -nodes $(NODES) -bombs 2 -runs 20 -at-once 4 -ttl 5s -slack 2s && \
	go run ./test/chaos -nodes $(NODES) -bombs 1 -runs 6 -at-once 3 -ttl 5s -slack 2s -control
watchers: ; go run ./test/chaos -nodes $(NODES) -watchers 500 -runs 120 -at-once 6 -ttl 5s && \
	go run ./test/chaos -nodes $(NODES) -servers 1 -watchers 500 -runs 120 -at-once 6 -ttl 5s && \
	go run ./test/chaos -nodes $(NODES) -watchers 40 -runs 30 -at-once 6 -ttl 5s -control
purses:   ; go run ./test/chaos -nodes $(NODES) -purses 1 -ttl 5s -gap 1s
# slow needs strace.
slow:     ; go run ./test/chaos -nodes $(NODES) -slow 20ms -runs 6 -at-once 3 -ttl 20s $(CHAOS) && \
	go run ./test/chaos -nodes $(NODES) -slow 100ms -runs 3 -at-once 3 -ttl 20s $(CHAOS) && \
	go run ./test/chaos -nodes $(NODES) -slow 1ms -runs 6 -at-once 3 -ttl 3s -control $(CHAOS)
# full disk needs root and tmpfs.
full:     ; go run ./test/chaos -full disk -cycles 20 && \
	go run ./test/chaos -nodes $(NODES) -full streams -ttl 5s -runs 20 -at-once 6 && go run ./test/chaos -nodes $(NODES) -full disk -ttl 5s -runs 20 -at-once 6 $(CHAOS) && \
	go run ./test/chaos -nodes $(NODES) -full streams -ttl 5s -runs 12 -at-once 4 -control && go run ./test/chaos -nodes $(NODES) -full disk -ttl 5s -runs 12 -at-once 4 -control $(CHAOS)
fuzz:     ; go test ./mailbox -run '^$$' -fuzz FuzzDecode -fuzztime $(DURATION)
	go test ./internal/modelhttp -run '^$$' -fuzz FuzzStreamBody -fuzztime $(DURATION)
	go test ./internal/modelhttp -run '^$$' -fuzz FuzzJSONWriter -fuzztime $(DURATION)
	go test ./model/openai -run '^$$' -fuzz FuzzChunk -fuzztime $(DURATION)
	go test ./model/openai -run '^$$' -fuzz FuzzPiece -fuzztime $(DURATION)
	go test ./model/anthropic -run '^$$' -fuzz FuzzPiece -fuzztime $(DURATION)
	go test ./internal/httpapi -run '^$$' -fuzz FuzzRequestDecoder -fuzztime $(DURATION)
	go test ./client -run '^$$' -fuzz FuzzParsePositions -fuzztime $(DURATION)
	go test ./internal/runfile -run '^$$' -fuzz FuzzRead -fuzztime $(DURATION)
	go test ./internal/control/runimport -run '^$$' -fuzz FuzzRestoredEntry -fuzztime $(DURATION)
	go test ./internal/a2aclient -run '^$$' -fuzz FuzzA2AResults -fuzztime $(DURATION)
	go test ./internal/a2aserver -run '^$$' -fuzz FuzzMessages -fuzztime $(DURATION)
# Each entry point of a node. Its goroutines make coverage vary, so a minimization would not end.
fuzz-doors: ; go test ./internal/node -run '^$$' -fuzz FuzzVerbs -fuzztime $(DURATION) -fuzzminimizetime 1x
	go test ./internal/node -run '^$$' -fuzz FuzzPrompts -fuzztime $(DURATION) -fuzzminimizetime 1x
	go test ./internal/node -run '^$$' -fuzz FuzzREST -fuzztime $(DURATION) -fuzzminimizetime 1x
	go test ./internal/node -run '^$$' -fuzz FuzzMCP -fuzztime $(DURATION) -fuzzminimizetime 1x
	go test ./internal/node -run '^$$' -fuzz FuzzA2A -fuzztime $(DURATION) -fuzzminimizetime 1x
	go test ./internal/node -run '^$$' -fuzz FuzzOpenAI -fuzztime $(DURATION) -fuzzminimizetime 1x
	go test ./internal/node -run '^$$' -fuzz FuzzEventStreams -fuzztime $(DURATION) -fuzzminimizetime 1x
fuzz-files: ; go test ./internal/runfile -run '^$$' -fuzz FuzzRead -fuzztime 60s
bench:    ; go test ./actors -run '^$$' -bench . -benchtime 3x
# The same workloads in troupe, a floor and eino (docs/benchmarks.md). BENCH=-short for a first look.
bench-peers: ; cd test/bench && go run . $(BENCH)
e2e:      screen ; go test -tags e2e -count=1 ./internal/test/mockprovider/... ./test/e2e/...
# troupe top under tmux, at two sizes, while its node is killed
screen:   ; go test -tags e2e -count=1 ./test/screen
# Attacks on troupe: those of one account beside the code that they attack, those of a second account (Linux, root) in test/attacks.
attacks:  ; go test -count=1 -run '^TestAttack' ./... && go test -tags attacks -count=1 -timeout 20m ./test/attacks
# promtool judges the metrics of a real run, the alert rules and their tests.
metrics:  build ; sh deploy/prometheus/check.sh
# All kinds of damage to a run in all modes; `go test ./...` tries each kind in one mode, another each day.
damage:   ; go test ./internal/node -run '^TestAttackDamagedRunsCanBeEnded$$' -count=1 -host.damage all
# The OpenTelemetry Collector receives the spans and the metrics of a run on two nodes: two minutes, most of them to compile it.
collector: ; cd test/collector && go vet ./... && go test -count=1 -v .
eval:     ; go run ./cmd/cli eval test/evals
picture:  build ; sh docs/picture.sh

# the page of a node from its TypeScript (internal/ui/web), with npm; then its terms
page:     ; go run -C build ./bundle ../internal/ui && $(MAKE) licenses
# the page in a real Chromium; its pictures are in the temporary directory
PAGE_TESTS := -run '^Test'
browser: browser-tools
	cd test/browser && go test -tags browser -count=1 -timeout 10m . $(PAGE_TESTS)
browser-tools:
	command -v chromium >/dev/null || apt-get install -y -q chromium >/dev/null
	cd test/browser && npm ci --ignore-scripts --no-audit --no-fund && go vet -tags browser .
# the pictures of the page in the docs, in a real Chromium; a scripted model answers
PAGE_PICTURES := -run '^TestPicturesOfTheDocs$$' -page.pictures
page-pictures:
	cd test/browser && npm ci --ignore-scripts --no-audit --no-fund && go test -tags browser -count=1 -timeout 5m . $(PAGE_PICTURES) "$$PWD/../../docs"
# a run of 10,000 agents and 200,000 events in the page (docs/benchmarks.md); 5 to 15 minutes
PAGE_BENCH := -run '^TestLargeRunStaysSmooth$$' -page.teams 100 -page.watch 1m -page.read 10m
page-bench:
	cd test/browser && npm ci --ignore-scripts --no-audit --no-fund && go test -tags browser -count=1 -timeout 30m -v . $(PAGE_BENCH)

# The tests of internal/node under the race detector; .ci/run runs an eighth of them.
race:     ; CGO_ENABLED=1 go test -race -timeout 30m -skip '^TestAttack' ./internal/node ./internal/logstore/jetstream
