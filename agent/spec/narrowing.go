package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Narrowing is what an operator takes from a live agent: calls that its rules fit are denied or asked about, and the mode
// becomes stricter. It can allow nothing.
type Narrowing struct {
	Mode PermissionMode   `msgpack:"m,omitempty" json:"mode,omitempty"`
	Ask  []PermissionRule `msgpack:"k,omitempty" json:"ask,omitempty"`
	Deny []PermissionRule `msgpack:"d,omitempty" json:"deny,omitempty"`
}

// Bounds of one narrowing, so that the tasks of later children fit an entry.
const (
	narrowingRulesMax = 64
	narrowingBytesMax = 8 << 10
)

// Validate says why no agent can get such a narrowing. It does not read the rules.
func (n Narrowing) Validate() error {
	rules := len(n.Ask) + len(n.Deny)
	switch size := n.Permissions().Size(); {
	case rules == 0 && n.Mode == "":
		return errors.New("neither a rule that denies or asks nor a mode is named")
	case n.Mode != "" && !slices.Contains(PermissionModes, n.Mode):
		return fmt.Errorf("there is no permission mode %.40q", n.Mode)
	case rules > narrowingRulesMax:
		return fmt.Errorf("%d rules are set at once, at most %d may be", rules, narrowingRulesMax)
	case size > narrowingBytesMax:
		return fmt.Errorf("the rules have %d bytes, at most %d may be set at once", size, narrowingBytesMax)
	}
	return nil
}

// Permissions are the narrowing as one of the permissions that an agent is decided by.
func (n Narrowing) Permissions() Permissions {
	return Permissions{Narrows: true, Mode: n.Mode, Ask: n.Ask, Deny: n.Deny}
}

// StrictestMode is the strictest mode of permissions that are decided by together.
func StrictestMode(list []Permissions) PermissionMode {
	strictest := ModeBypass
	for _, p := range list {
		if p.Narrows && p.Mode == "" {
			continue // it has none
		}
		strictest = cmp.Or(p.Mode, ModeDefault).Stricter(strictest)
	}
	return strictest
}

// Widens reports whether a mode is not stricter than the one that holds.
func (m PermissionMode) Widens(holds PermissionMode) bool {
	return m != "" && (m == holds || m.Stricter(holds) != m)
}
