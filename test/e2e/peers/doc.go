// Package peers has the MCP programs of others that our client is tried with:
// the reference servers "everything" and "filesystem", and the suite that judges
// whether a client keeps to the protocol. Its tests are built with the tag e2e:
//
//	go test -tags e2e ./test/e2e/peers
package peers
