package throttle_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/internal/throttle"
)

// A rate that cannot be meant is refused with the item and what would be right.
func TestRatesWithoutAMeaningAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"openai":                "\"openai\" is not PROVIDER=NUMBER",
		"500":                   "is not PROVIDER=NUMBER",
		"openai=many":           "is not PROVIDER=NUMBER",
		"openai=1.5":            "is not PROVIDER=NUMBER",
		"openai=0":              "openai=0: it may be 1 to",
		"openai=-3":             "it may be 1 to",
		"openai=2000000000":     "it may be 1 to",
		"openai=1,openai=2":     "openai is given twice",
		"openai/=5":             "is not PROVIDER or PROVIDER/MODEL",
		"=5":                    "is not PROVIDER or PROVIDER/MODEL",
		"openai=99999999999999": "it may be 1 to",
	} {
		if _, err := throttle.ParseRateTable(text); !errors.Is(err, throttle.ErrRates) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The rate of a model goes before that of its provider; where two tables count, the lower rate does,
// whichever of them names the model.
func TestLowerRateOfTwoTablesCounts(t *testing.T) {
	t.Parallel()
	table, err := throttle.ParseRateTable(" openai=500, openai/small=900 ,anthropic/opus/x=50,")
	if err != nil || table.Of("openai", "any") != 500 || table.Of("openai", "small") != 900 || table.Of("anthropic", "opus/x") != 50 || table.Of("anthropic", "y") != 0 {
		t.Fatalf("%v, %v", table, err)
	}
	if again, err := throttle.ParseRateTable(table.String()); err != nil || again.String() != table.String() {
		t.Errorf("%v, %v", again, err)
	}
	names := []string{"openai", "openai/a", "openai/b", "gemini", "gemini/a"}
	rapid.Check(t, func(t *rapid.T) {
		tables := [2]throttle.RateTable{{}, {}}
		for i := range tables {
			for _, name := range names {
				if n := rapid.Int64Range(0, 9).Draw(t, "n"); n > 0 {
					tables[i][name] = n
				}
			}
		}
		both := tables[0].LoweredBy(tables[1])
		for _, p := range []string{"openai", "gemini"} {
			for _, m := range []string{"a", "b", "c"} {
				want := tables[0].Of(p, m)
				if n := tables[1].Of(p, m); n > 0 && (want == 0 || n < want) {
					want = n
				}
				if got := both.Of(p, m); got != want {
					t.Fatalf("%s/%s: %d, want %d: %v and %v are %v", p, m, got, want, tables[0], tables[1], both)
				}
			}
		}
		if raised := tables[0].RaisedBy(tables[1]); raised != "" && tables[1][raised] <= tables[0].Of(strings.Split(raised+"/", "/")[0], strings.Split(raised+"/", "/")[1]) {
			t.Fatalf("%s is not raised by %v over %v", raised, tables[1], tables[0])
		}
	})
}
