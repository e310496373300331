package httpapi

import "net/http"

// answerHealth is GET /healthz: the process answers.
func answerHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Health{Status: "ok"})
}

// Health is the JSON of /healthz and /readyz.
type Health struct {
	Status string `json:"status"` // ok, or unavailable
	Why    string `json:"why,omitempty"`
}

// answerReady is GET /readyz: the node can take work. Only clients with the token read why it cannot.
func answerReady(a access, ready func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := ready()
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
