package investigator

import "testing"

func TestLicenseNameKeepsItsParentheses(t *testing.T) {
	for line, want := range map[string]string{
		"The MIT License (MIT)":       "The MIT License (MIT)",
		"(The MIT License)":           "The MIT License",
		"# (ISC) or (MIT)":            "(ISC) or (MIT)",
		"   Apache License  ":         "Apache License",
		"== GNU GPL (version 2) ==":   "GNU GPL (version 2)",
		"":                            "",
		"*(C) The Authors (of this)*": "(C) The Authors (of this)",
	} {
		if got := licenseName(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
