package httpapi

import (
	"net/http"

	"github.com/troupe-run/troupe/client"
)

// listSchedules is GET /api/v1/schedules.
func listSchedules(all client.Schedules) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		list, err := all.List(r.Context())
		answer(w, list, err)
	}
}

// getSchedule is GET /api/v1/schedules/{id}.
func getSchedule(all client.Schedules) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		info, err := all.Get(r.Context(), r.PathValue("id"))
		answer(w, info, err)
	}
}

// deleteSchedule is DELETE /api/v1/schedules/{id}.
func deleteSchedule(all client.Schedules) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := all.Delete(r.Context(), r.PathValue("id")); err != nil {
			refuseError(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
