package permission

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

// Bounds of one narrowing, so that the tasks of later children fit an entry.
const (
	narrowingRulesMax = 64
	narrowingBytesMax = 8 << 10
)

// CheckNarrowingBounds says why no agent can get such a narrowing. It does not read the rules.
func CheckNarrowingBounds(n spec.Narrowing) error {
	rules := len(n.Ask) + len(n.Deny)
	switch size := RuleBytes(n.Permissions()); {
	case rules == 0 && n.Mode == "":
		return errors.New("neither a rule that denies or asks nor a mode is named")
	case n.Mode != "" && !slices.Contains(spec.PermissionModes, n.Mode):
		return fmt.Errorf("there is no permission mode %.40q", n.Mode)
	case rules > narrowingRulesMax:
		return fmt.Errorf("%d rules are set at once, at most %d may be", rules, narrowingRulesMax)
	case size > narrowingBytesMax:
		return fmt.Errorf("the rules have %d bytes, at most %d may be set at once", size, narrowingBytesMax)
	}
	return nil
}

// CheckNarrowing reads the rules of a narrowing: with one that cannot be read an agent could call nothing.
func CheckNarrowing(n spec.Narrowing) error {
	for _, r := range slices.Concat(n.Ask, n.Deny) {
		if _, err := ParseGuard(r.Text); err != nil {
			return err
		}
	}
	return nil
}
