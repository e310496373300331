package modelhttp

// ClientName names a client of a provider. A client embeds it, so that its printed form is the name and
// never the key that it holds.
type ClientName string

// String returns the name.
func (n ClientName) String() string { return string(n) }

// GoString is for %#v.
func (n ClientName) GoString() string { return string(n) }
