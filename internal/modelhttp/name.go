package modelhttp

import (
	"slices"
	"strings"
)

// ClientName names a client of a provider. A client embeds it, so that its printed form is the name and
// never the key that it holds.
type ClientName string

// String returns the name.
func (n ClientName) String() string { return string(n) }

// GoString is for %#v.
func (n ClientName) GoString() string { return string(n) }

// IsOfFamily reports whether the name of a model begins as one of a family.
func IsOfFamily(name string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(name, b) })
}
