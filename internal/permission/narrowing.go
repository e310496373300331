package permission

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

// CheckNarrowing reads the rules of a narrowing: with one that cannot be read an agent could call nothing.
func CheckNarrowing(n spec.Narrowing) error {
	for _, r := range slices.Concat(n.Ask, n.Deny) {
		if _, err := ParseGuard(r.Text); err != nil {
			return err
		}
	}
	return nil
}
