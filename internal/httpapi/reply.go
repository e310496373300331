package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
)

// Problem is the JSON of an error.
type Problem struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	Code  int    `json:"code"` // the HTTP status
}

func refuse(w http.ResponseWriter, code int, text, hint string) {
	writeJSON(w, code, Problem{Error: text, Hint: hint, Code: code})
}

// refuseEarly refuses a request before it reaches its handler, in the form of the API that its path belongs to.
func refuseEarly(w http.ResponseWriter, r *http.Request, code int, text, hint string) {
	if strings.HasPrefix(r.URL.Path, chatPrefix) {
		refuseChat(w, &errBody{code, text, hint})
		return
	}
	refuse(w, code, text, hint)
}

// refuseErrorEarly is refuseEarly for an error of the node.
func refuseErrorEarly(w http.ResponseWriter, r *http.Request, err error) {
	if strings.HasPrefix(r.URL.Path, chatPrefix) {
		refuseChat(w, err)
		return
	}
	refuseError(w, err)
}

// writeJSON answers a request. A client that does not read its answer is not told so.
func writeJSON(w http.ResponseWriter, code int, doc any) {
	raw, err := json.Marshal(doc)
	if err != nil {
		code, raw = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON","code":500}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(raw, '\n')) // an error means that the client is gone
}

// refuseError answers a request with the error of the node, or of the way to it.
func refuseError(w http.ResponseWriter, err error) {
	p, retry := explain(err)
	if retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((retry+time.Second-1)/time.Second)))
	}
	writeJSON(w, p.Code, p)
}

// explain returns the problem that an error is, and after which time the same request may succeed.
func explain(err error) (p Problem, retry time.Duration) {
	var refused *client.Error
	switch {
	case errors.As(err, &refused):
		code, convErr := strconv.Atoi(refused.Code)
		if convErr != nil || code < 400 || code > 599 {
			code = http.StatusBadGateway
		}
		return Problem{refused.Text, refused.Hint, code}, refused.Retry
	case errors.Is(err, client.ErrAmbiguous):
		return Problem{err.Error(), "give more letters of the run id", http.StatusConflict}, 0
	case errors.Is(err, client.ErrCursor):
		return Problem{err.Error(), "use a cursor of an earlier answer about this run, or leave it out", http.StatusBadRequest}, 0
	case errors.Is(err, client.ErrNoDescription):
		return Problem{err.Error(), "", http.StatusNotFound}, 0
	case errors.Is(err, client.ErrTooLarge):
		return Problem{"the request is too large for a node", "", http.StatusRequestEntityTooLarge}, 0
	case client.Lost(err):
		return Problem{"no node answers", "try again in a moment; troupe nodes list shows the nodes", http.StatusServiceUnavailable}, time.Second
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Problem{"the request took too long", "", http.StatusGatewayTimeout}, 0
	}
	return Problem{"the request failed: " + err.Error(), "", http.StatusInternalServerError}, 0
}

// refuseUnknownPath answers a request that no route serves: with 405 if another method would be.
func refuseUnknownPath(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		refuseEarly(w, r, http.StatusMethodNotAllowed, r.Method+" is not served at this path", "use "+strings.Join(allowed, " or "))
		return
	}
	refuseEarly(w, r, http.StatusNotFound, "there is nothing at "+quoteShort(r.URL.Path), "docs/http.md lists the paths")
}

// errBody is an error of the body of a request.
type errBody struct {
	code       int
	text, hint string
}

func (e *errBody) Error() string { return e.text }

// readBody decodes the one JSON document of a request, strict: with known fields only. An empty
// body is an empty document.
func readBody(r *http.Request, doc any, strict bool) error {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return &errBody{http.StatusUnsupportedMediaType, "the body is sent as " + quoteShort(kind) + ", not as JSON", "send the header Content-Type: application/json"}
		}
	}
	return decodeBody(r.Body, doc, strict)
}

// asBodyError is the error of a body that did not arrive whole.
func asBodyError(err error) *errBody {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &errBody{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit), ""}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &errBody{http.StatusRequestTimeout, "the body did not arrive in time", ""}
	}
	return &errBody{http.StatusBadRequest, "the body is not a valid request: " + clip.Marked(strings.TrimPrefix(err.Error(), "json: "), 2*quotedMax, "…"), "docs/http.md lists the fields"}
}

// decodeBody decodes one JSON document; strict: with known fields only.
func decodeBody(body io.Reader, doc any, strict bool) error {
	d := json.NewDecoder(body)
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(doc)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return asBodyError(err)
	}
	switch _, err := d.Token(); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return asBodyError(err)
	case !errors.Is(err, io.EOF):
		return &errBody{http.StatusBadRequest, "the body has more than one JSON document", ""}
	}
	return nil
}

// refuseBody answers a request whose body cannot be used.
func refuseBody(w http.ResponseWriter, err error) {
	var bad *errBody
	if errors.As(err, &bad) {
		refuse(w, bad.code, bad.text, bad.hint)
		return
	}
	refuseError(w, err)
}

// quotedMax is how many bytes of a foreign text an error quotes.
const quotedMax = 80

func quoteShort(text string) string { return strconv.Quote(clip.Marked(text, quotedMax, "…")) }
