// Package readme runs the commands of README.md one by one, as they are written, in a fresh clone and a fresh home
// without a key: `go test -tags e2e ./test/readme`.
package readme
