//go:build younger

package main

// younger is by how much the rules of this build are newer than those of its source:
// the chaos suite has it beside an ordinary one, as in an upgrade (PROTOCOL P10).
const younger = 1
