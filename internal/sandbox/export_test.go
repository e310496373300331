package sandbox

// BeforeStart calls f in each Run between the check of the directory and the start of the command, until the result
// is called.
func BeforeStart(f func()) func() {
	beforeStart = f
	return func() { beforeStart = func() {} }
}
