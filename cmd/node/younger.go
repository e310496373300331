//go:build younger

package main

// younger is the number by which this build raises its rules version above the version in
// the source. The chaos suite runs such a node beside an ordinary one, as in an upgrade
// (PROTOCOL P10).
const younger = 1
