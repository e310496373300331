//go:build !unix

package builtin

// sameOwner cannot be told here.
func sameOwner(string, string) bool { return true }
