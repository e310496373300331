// Package test holds what tests of several packages share: golden files, script tests, a check for
// leaked goroutines, servers that speak the providers' APIs, and the suite that every provider's
// adapter passes. The suites of whole programs are under /test.
package test
