package amount

import (
	"encoding/json"
	"os"
	"testing"
)

// amountCase is a text of testdata/amounts.json with its value. The forms of the page are tested with the same cases.
type amountCase struct {
	Text    string
	Value   float64
	Refused bool
}

func readCases(t *testing.T) (cases struct{ Tokens, USD []amountCase }) {
	t.Helper()
	raw, err := os.ReadFile("testdata/amounts.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases.Tokens) == 0 || len(cases.USD) == 0 {
		t.Fatalf("%d and %d cases, %v", len(cases.Tokens), len(cases.USD), err)
	}
	return cases
}

func TestParseTokens(t *testing.T) {
	for _, c := range readCases(t).Tokens {
		if n, err := ParseTokens(c.Text); float64(n) != c.Value || (err != nil) != c.Refused {
			t.Errorf("%q: %d, %v", c.Text, n, err)
		}
	}
}

func TestParseUSD(t *testing.T) {
	for _, c := range readCases(t).USD {
		if v, err := ParseUSD(c.Text); v != c.Value || (err != nil) != c.Refused {
			t.Errorf("%q: %g, %v", c.Text, v, err)
		}
	}
}
