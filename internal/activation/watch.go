package activation

import "github.com/troupe-run/troupe/mailbox"

// Watch makes a reader that only watches a log: it steps the machine by what counts, and never becomes active. The
// caller passes it the entries in order with Next.
func Watch(addr mailbox.Address, m Machine) *LogReader {
	return NewLogReader(addr, "", mailbox.Epoch{}, m)
}
