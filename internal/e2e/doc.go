// Package e2e shows whole runs with peers that nobody here wrote: a mock of
// the providers from npm and the stock nats CLI. It is built with the tag e2e:
//
//	go test -tags e2e ./internal/e2e/...
package e2e
