package gemini

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/model"
)

// A refusal of Google names the quotas that are used up. Those for a day are none for a minute.
func TestQuotasOfARefusal(t *testing.T) {
	t.Parallel()
	violation := func(id, value string) string {
		return fmt.Sprintf(`{"quotaMetric":"generativelanguage.googleapis.com/x","quotaId":%q,"quotaDimensions":{"model":"m"},"quotaValue":%s}`, id, value)
	}
	for violations, want := range map[string]model.RateLimits{
		violation("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", `"10"`):                                                                         {Requests: 10},
		violation("GenerateContentInputTokensPerModelPerMinute-FreeTier", `"250000"`):                                                                     {Tokens: 250000},
		violation("GenerateRequestsPerMinutePerProjectPerModel", `"90"`) + "," + violation("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", `"9"`): {Requests: 9},
		violation("GenerateRequestsPerDayPerProjectPerModel-FreeTier", `"250"`):                                                                           {},
		violation("GenerateRequestsPerMinutePerProjectPerModel", `"0"`):                                                                                   {},
		violation("GenerateRequestsPerMinutePerProjectPerModel", `"-4"`):                                                                                  {},
		violation("GenerateRequestsPerMinutePerProjectPerModel", `"1e9"`):                                                                                 {},
		violation("GenerateRequestsPerMinutePerProjectPerModel", `10`):                                                                                    {},
		"": {},
	} {
		body := `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[` + violations + `]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`
		for _, form := range []string{body, "[" + body + "]"} {
			if got := readRateLimits([]byte(form)); got != want {
				t.Errorf("%s: %+v, want %+v", violations, got, want)
			}
		}
	}
	for _, body := range []string{"", "{", "[]", `{"error":"type.googleapis.com/google.rpc.QuotaFailure"}`, `{"error":{"details":[{"@type":"x","violations":[{"quotaId":"RequestsPerMinute","quotaValue":"5"}]}]}}`} {
		if got := readRateLimits([]byte(body)); got != (model.RateLimits{}) {
			t.Errorf("%q: %+v", body, got)
		}
	}
}
