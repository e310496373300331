package names

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MachinePrefix begins the name of a machine's pool: the pool of all runs that have a
// directory there (PROTOCOL P20).
const MachinePrefix = "host-"

// MachinePool is the name of the pool of a machine.
func MachinePool(machine string) string {
	name := MachinePrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, strings.ToLower(cmp.Or(machine, "unnamed")))
	if len(name) > TokenBytesMax { // a truncated name must still be unique
		sum := sha256.Sum256([]byte(machine))
		name = name[:TokenBytesMax-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return name
}

// MachineCommand is the subject of a verb for the nodes of one machine: for requests that name a
// directory there.
func (n Names) MachineCommand(verb, machine string) (string, error) {
	subject, err := n.CommandSubject(verb)
	return subject + "." + MachinePool(machine), err
}
