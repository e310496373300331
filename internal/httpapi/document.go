package httpapi

import (
	_ "embed"
	"net/http"
)

// document is the OpenAPI description of the server. It is made from the Go types and the routes:
// `go test ./internal/httpapi -rewrite`.
//
//go:embed openapi.json
var document []byte

// Document returns the OpenAPI description of the server.
func Document() []byte { return document }

// serveDocument is GET /api/v1/openapi.json.
func serveDocument(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) // a client that does not read its answer is not told so
}
