// Package attacks attacks troupe the way a second account on the same machine
// does. Its tests need Linux, root and the build tag attacks, because each of
// them runs real processes under two accounts that it creates and removes:
//
//	make attacks
//
// Attacks that need only one account are tested next to the code that they attack.
// The name of every attack test begins with TestAttack, so that
// `go test -run '^TestAttack' ./...` runs them all.
package attacks
