// Package e2e holds the tests of the built programs with programs of other
// people: `go test -tags e2e ./internal/e2e`. They build what they need; the
// programs of others are pinned in tools/go.mod.
package e2e
