package httpapi

import "net/http"

// Health is the JSON of /healthz and /readyz.
type Health struct {
	Status string `json:"status"` // ok, or unavailable
	Why    string `json:"why,omitempty"`
}

// answerProbe is GET /healthz: the node need not be started again, and GET /readyz: it can take work. Only clients with
// the token read why not.
func answerProbe(a access, check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := check()
		switch {
		case err == nil:
			writeJSON(w, http.StatusOK, Health{Status: "ok"})
		case a.hasToken(r):
			writeJSON(w, http.StatusServiceUnavailable, Health{Status: "unavailable", Why: err.Error()})
		default:
			writeJSON(w, http.StatusServiceUnavailable, Health{Status: "unavailable"})
		}
	}
}
