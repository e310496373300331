package model

import "slices"

// classes, the least harmful first.
var classes = []Class{Read, Idempotent, Effect, Irreversible}

// Risk orders classes: a higher one needs more care. It is -1 for a word that
// is no class.
func (c Class) Risk() int { return slices.Index(classes, c) }

// Stricter returns the one of two classes that needs more care. A source other than the
// operator may only make a tool's class stricter: a hint can remove trust, never add it.
func (c Class) Stricter(hint Class) Class {
	if hint.Risk() > c.Risk() {
		return hint
	}
	return c
}
