package model

import "slices"

// classes, the least harmful first.
var classes = []Class{Read, Idempotent, Effect, Irreversible}

// Risk orders classes: a higher one needs more care. It is -1 for a word that
// is no class.
func (c Class) Risk() int { return slices.Index(classes, c) }

// Stricter is the one of two classes that needs more care. Whoever is not the
// operator may say no more about a tool than this: a hint can only take trust away.
func (c Class) Stricter(hint Class) Class {
	if hint.Risk() > c.Risk() {
		return hint
	}
	return c
}
