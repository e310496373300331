# Targets for those who work on troupe. `go test ./...` needs none of them.
DURATION ?= 10m
KILLS ?= 50
SEEDS ?= 1000000

RUNS ?= 300
NODES ?= 3
TTL ?= 3s

.PHONY: build check sim mutants chaos cluster brokers partitions fuzz bench e2e eval picture
build:    ; CGO_ENABLED=0 go build -o bin/troupe ./cmd/cli && CGO_ENABLED=0 go build -o bin/troupe-node ./cmd/node
check:    ; bash .ci/run
sim:      ; go test ./internal/sim -run TestSeeds -count=1 -timeout 0 -sim.seeds=$(SEEDS)
mutants:  ; go run ./internal/sim/mutants
chaos:    ; go run ./internal/chaos -kills $(KILLS)
cluster:  ; go run ./internal/chaos -nodes $(NODES) -ttl $(TTL) -runs $(RUNS) -kills 2 -stops 1 -drains 1 -for $(DURATION)
brokers:  ; go run ./internal/chaos -nodes $(NODES) -servers 3 -leaders 20 -every 30s -ttl 20s -runs $(RUNS)
partitions: ; go run ./internal/chaos -nodes $(NODES) -servers 3 -cuts 30 -every 10s -ttl 10s -runs $(RUNS)
fuzz:     ; go test ./mailbox -run '^$$' -fuzz FuzzDecode -fuzztime $(DURATION)
bench:    ; go test ./actors -run '^$$' -bench . -benchtime 3x
e2e:      ; go test -tags e2e -count=1 ./internal/mockprovider/... ./internal/e2e/...
eval:     ; go run ./cmd/cli eval evals
picture:  build ; sh docs/picture.sh
