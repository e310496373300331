package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Rates are a mapping, a list or a text, and what cannot be meant is refused at its line.
func TestRatesInSettings(t *testing.T) {
	for text, want := range map[string]string{
		"requests_per_minute: {openai: 500, openai/m: 60}\n":        "openai=500,openai/m=60",
		"requests_per_minute: [openai=500, anthropic/a/b=60]\n":     "openai=500,anthropic/a/b=60",
		"requests_per_minute:\n  openai: 500\n  gemini/x: 60\n":     "openai=500,gemini/x=60",
		"requests_per_minute: openai=500\n":                         "openai=500",
		"requests_per_minute: 500\n":                                `error: :1: requests_per_minute: invalid rates per minute: "500" is not PROVIDER=NUMBER`,
		"requests_per_minute: {opnai: 500}\n":                       "error: did you mean openai?",
		"requests_per_minute: {openai: 0}\n":                        "error: openai=0: it may be 1 to 1000000000; leave it out for no limit",
		"requests_per_minute: {openai: {m: 3}}\n":                   "error: expected PROVIDER: NUMBER or PROVIDER/MODEL: NUMBER",
		"requests_per_minute: {openai: '5,gemini=7'}\n":             "error: expected PROVIDER: NUMBER or PROVIDER/MODEL: NUMBER",
		"model: a/b\nrequests_per_minute: {openai: 5, openai: 6}\n": "error: openai is given twice",
		"requests_per_minute: [[a]]\n":                              "error: expected a list of texts",
	} {
		user := filepath.Join(t.TempDir(), "user.yaml")
		writeFile(t, user, text)
		got, err := Load(SettingSources{User: user, Getenv: func(string) string { return "" }})
		if why, bad := strings.CutPrefix(want, "error: "); bad != (err != nil) || bad && (!errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), why)) {
			t.Errorf("%q: %v", text, err)
		} else if !bad && got["requests_per_minute"].Value != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	_, err := Load(SettingSources{User: filepath.Join(t.TempDir(), "none"), Getenv: func(name string) string { return map[string]string{"TROUPE_TOKENS_PER_MINUTE": "openai"}[name] }})
	if err == nil || !strings.Contains(err.Error(), "TROUPE_TOKENS_PER_MINUTE: tokens_per_minute: invalid rates per minute") {
		t.Error(err)
	}
}

// The file of a directory can lower the user's rates, not raise them; of two the lower one counts.
//
//behaviour:shows G6
func TestADirectoryCanOnlyLowerRates(t *testing.T) {
	const key = "tokens_per_minute"
	for _, c := range []struct{ theirs, mine, counts string }{
		{"openai=500", "", "openai=500"},
		{"openai=50", "openai=500", "openai=50"},
		{"openai=501", "openai=500", ""},
		{"openai/m=501", "openai=500", ""},
		{"openai/m=100", "openai=500,openai/m=50", ""},
		{"openai=100", "openai=500,openai/m=50", "openai=100,openai/m=50"},
		{"gemini=7", "openai=500", "gemini=7,openai=500"},
		{"openai=many", "openai=500", ""},
	} {
		got, err := loadSettings(t, key+": "+c.theirs+"\n", key+": "+c.mine+"\n", nil)
		if (c.counts == "") != (err != nil) || err != nil && !strings.Contains(err.Error(), FileName+":1: "+key) || got[key].Value != c.counts {
			t.Errorf("%+v: %q, %v", c, got[key].Value, err)
		}
	}
	// A command without the flag, or with it, does not fail for what a directory says; the lower rate counts there, too.
	got, err := loadSettings(t, key+": openai/m=900\n", key+": openai=500\n", nil, "tokens-per-minute")
	if err != nil || got[key].Value != "openai=500,openai/m=500" {
		t.Errorf("%v %v", got, err)
	}
	got, err = loadSettings(t, key+": openai=900\n", "", map[string]string{"TROUPE_TOKENS_PER_MINUTE": "openai=500"})
	if err != nil || got[key].Value != "openai=500" {
		t.Errorf("%v %v", got, err)
	}
}
