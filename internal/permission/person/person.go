// Package person tells people apart by the names that come with their answers.
package person

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// ByPerson is the author of a decision of a person without a name.
const ByPerson = "a person"

// ByFork is the author of what a fork of a run changes. Who starts a fork may have approved
// already, so it is no person.
const ByFork = "fork"

// ByClient begins a name that a client states and that could be taken for a word of troupe.
const ByClient = "client "

// IsNamed reports whether an approval has a name. Two approvals without names may come from one person, so a question
// that two people must approve accepts none.
func IsNamed(by string) bool {
	name := strings.ToLower(shownName(by))
	for strings.HasPrefix(name, ByClient) {
		name = strings.TrimPrefix(name, ByClient)
	}
	return name != "" && name != strings.TrimSpace(ByClient) && name != ByPerson && name != ByFork
}

// IsSamePerson reports whether two names of people look the same, in whatever letters.
func IsSamePerson(a, b string) bool { return strings.EqualFold(shownName(a), shownName(b)) }

// shownName is what a person sees of a name: composed, with one space between words, and without
// characters that take no room.
func shownName(name string) string {
	name = norm.NFKC.String(strings.Map(shownRune, name))
	return strings.Join(strings.Fields(strings.Map(shownRune, name)), " ") // a composition may be a filler, too
}

func shownRune(r rune) rune {
	switch {
	case unicode.IsSpace(r), r == '\u2800': // braille without dots
		return ' '
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return -1
	}
	return r
}
