// Package e2e holds the tests of the built programs together with third-party
// programs: `go test -tags e2e ./test/e2e`. They build what they need; the
// third-party programs are pinned in build/go.mod.
package e2e
