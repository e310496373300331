package person_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/permission/person"
)

func TestNamesThatLookAlikeAreOnePerson(t *testing.T) {
	for _, pair := range [][2]string{
		{"ann", " ANN"}, {"J\u00f6rg", "Jo\u0308rg"}, {"ann", "ann\u3164"}, {"ann", "a\u200bnn"}, {"ann", "ann\ufe0f"}, {"ann", "ann\u034f"},
		{"ann", "ann\uffa0"}, {"ann", "ann\u2800"}, {"ann", "\uff41nn"}, {"ann lee", "ann\u00a0 lee"},
	} {
		if !person.IsSamePerson(pair[0], pair[1]) {
			t.Errorf("%+q and %+q are two people", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"ann", "bob"}, {"J\u00f6rg", "Jorg"}, {"ann lee", "annlee"}} {
		if person.IsSamePerson(pair[0], pair[1]) {
			t.Errorf("%+q and %+q are one person", pair[0], pair[1])
		}
	}
}

func TestWordsForNobodyAreNoNames(t *testing.T) {
	for _, by := range []string{"", " ", "\u3164", "a person", "A  Person", "client a person", "client client a person", "client", "fork", "Fork\u200b", "client fork"} {
		if person.IsNamed(by) {
			t.Errorf("%+q is a name", by)
		}
	}
	for _, by := range []string{"ann", "client the boss", "forka", "\u5f20\u4f1f"} {
		if !person.IsNamed(by) {
			t.Errorf("%+q is no name", by)
		}
	}
}
