package verify

// figures are the sums at an entry of the log of the run.
type figures struct {
	entry                uint64
	granted              bool // with the grants that the entry caused
	limit, settled, held Amount
}

func (b *ledger) note(entry uint64, granted bool) {
	b.figures = append(b.figures,
		figures{entry, granted, b.limit, b.settled.plus(b.others.Spent), b.held.plus(b.others.Held)})
}

// before returns the figures with which the supervisor answered a request at an entry.
func (b *ledger) before(entry uint64) (found figures) {
	for _, f := range b.figures {
		if f.entry < entry || f.entry == entry && !f.granted {
			found = f
		}
	}
	return found
}
