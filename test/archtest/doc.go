// Package archtest enforces the rules of the whole tree as tests: which package may import
// which, how long files and functions may be, what the pure packages and the
// shells must not use, and that docs/behaviours.md is true.
//
// A failure names the place and the reason of the rule. A change of a rule starts in
// ARCHITECTURE.md.
package archtest
