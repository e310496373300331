package httpapi

import (
	"net"
	"net/http"
	"slices"
	"strings"

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

// servePage serves the page, at the address of the node. Whoever asks for it as localhost is sent there: another program of
// this machine may listen at ::1, which browsers try first, and would be of the same origin as the page. A proxy may have
// that name, if the operator says so.
func (a access) servePage(w http.ResponseWriter, r *http.Request) {
	if at := literalHost(r); at != "" && !slices.Contains(a.hosts, "localhost") {
		http.Redirect(w, r, "http://"+at+"/", http.StatusTemporaryRedirect)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(ui.Page()) // a client that does not read its answer is not told so
}

// literalHost is the host of a request for localhost with the address of this end in place of the name; "" for any other.
func literalHost(r *http.Request) string {
	local, ok := localAddress(r)
	if !strings.EqualFold(hostName(r.Host), "localhost") || !ok || !local.IsLoopback() {
		return ""
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return net.JoinHostPort(local.String(), port)
	}
	return local.String()
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
