package httpapi

// slotShare is what an owner, or the operators, may use of the slots of a server: half of all slots is divided among them, and
// the other half is for whoever comes first.
type slotShare struct{ own, common chan struct{} }

// newSlotShares divides slots into a number of shares, each with one slot at least.
func newSlotShares(slots, parts int) []slotShare {
	own := max(1, slots/2/parts)
	common, shares := make(chan struct{}, max(0, slots-own*parts)), make([]slotShare, parts)
	for i := range shares {
		shares[i] = slotShare{own: make(chan struct{}, own), common: common}
	}
	return shares
}

// take takes a slot, which release gives back. ok: there was one.
func (s slotShare) take() (release func(), ok bool) {
	select {
	case s.own <- struct{}{}:
		return func() { <-s.own }, true
	default:
	}
	select {
	case s.common <- struct{}{}:
		return func() { <-s.common }, true
	default:
		return nil, false
	}
}
