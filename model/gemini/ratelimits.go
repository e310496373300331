package gemini

import (
	"encoding/json"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// Google sends no headers about rate limits. A refusal names the quota that is used up, in its
// details of the type google.rpc.QuotaFailure.
type quotaRefusal struct {
	Error struct {
		Details []struct {
			Type       string `json:"@type"`
			Violations []struct {
				QuotaID    string `json:"quotaId"`
				QuotaValue string `json:"quotaValue"`
			} `json:"violations"`
		} `json:"details"`
	} `json:"error"`
}

// quotaType is the type of the details about quotas.
const quotaType = "type.googleapis.com/google.rpc.QuotaFailure"

// readRateLimits reads what a refusal says about quotas for a minute. They are used up: nothing is left.
func readRateLimits(body []byte) (l model.RateLimits) {
	var e quotaRefusal
	if !strings.Contains(string(body), quotaType) || json.Unmarshal(modelhttp.FirstError(body), &e) != nil {
		return l
	}
	for _, d := range e.Error.Details {
		if d.Type != quotaType {
			continue
		}
		for _, v := range d.Violations {
			n, ok := modelhttp.ParseCount(v.QuotaValue)
			if !ok || n == 0 || !strings.Contains(v.QuotaID, "PerMinute") {
				continue
			}
			switch {
			case strings.Contains(v.QuotaID, "Tokens"):
				l.Tokens = lower(l.Tokens, n)
			case strings.Contains(v.QuotaID, "Requests"):
				l.Requests = lower(l.Requests, n)
			}
		}
	}
	return l
}

func lower(known, n int64) int64 {
	if known == 0 {
		return n
	}
	return min(known, n)
}
