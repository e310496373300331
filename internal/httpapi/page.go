package httpapi

import (
	"net/http"

	"github.com/troupe-run/troupe/internal/ui"
)

// pathAssets is the folder of the page's files.
const pathAssets = "/ui/"

// pagePolicy is the content security policy of the page. It has no exception: no text of a model, a tool or
// a person can become a script, a style, a form or a request to another server.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// isPagePath reports whether a path is a file of the page. These are the same in every troupe and say nothing
// about the node, so a browser loads them before it has a credential.
func isPagePath(path string) bool {
	return path == "/" || len(path) > len(pathAssets) && path[:len(pathAssets)] == pathAssets
}

// servePage serves the page.
func servePage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(ui.Page()) // a client that does not read its answer is not told so
}

// serveAsset serves a file of the page.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	kind, data := ui.Asset(r.PathValue("name"))
	if data == nil {
		refuse(w, http.StatusNotFound, "the page has no file "+quoteShort(r.PathValue("name")), "")
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	_, _ = w.Write(data) // see servePage
}
