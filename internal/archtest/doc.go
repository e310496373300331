// Package archtest holds the rules of the whole tree as tests: who imports
// whom, how long files and functions may be, what the pure packages and the
// shells must do without, and that docs/behaviours.md tells the truth.
//
// A failure names the place and the reason of the rule. A rule is changed in
// ARCHITECTURE.md first.
package archtest
