// Package peers has programs of others that troupe is tried with: the MCP reference servers "everything" and
// "filesystem", the suite that judges whether a client keeps to that protocol, a client and a server in the
// official SDK of A2A for npm, a client and an agent of the Synadia Agent Protocol in nats.js, and the official client of
// OpenAI for npm. Its tests are built with the tag e2e:
//
//	go test -tags e2e ./test/e2e/peers
package peers
