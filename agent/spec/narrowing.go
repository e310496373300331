package spec

// Narrowing is what an operator takes from a live agent: calls that its rules fit are denied or asked about, and the mode
// becomes stricter. It can allow nothing.
type Narrowing struct {
	Mode PermissionMode   `msgpack:"m,omitempty" json:"mode,omitempty"`
	Ask  []PermissionRule `msgpack:"k,omitempty" json:"ask,omitempty"`
	Deny []PermissionRule `msgpack:"d,omitempty" json:"deny,omitempty"`
}

// Permissions are the narrowing as one of the permissions that an agent is decided by.
func (n Narrowing) Permissions() Permissions {
	return Permissions{Narrows: true, Mode: n.Mode, Ask: n.Ask, Deny: n.Deny}
}
