// Package judges holds judges of what troupe sends and reads that cost more than a binary
// should carry: the Go SDKs of Anthropic, Google and OpenAI. It is a module of its own, so that
// go.mod of troupe knows nothing of them. What it needs is fetched when its tests run, and
// its go.mod follows that of troupe then:
//
//	cd test/judges && go test -mod=mod ./...
package judges
