package control

// Queue describes the runs that wait on a node until fewer runs are live.
type Queue struct {
	Place  func(run string) int  // from 1; 0: it is not queued
	Places func() map[string]int // of all of them
	Full   func() error          // refuses a new run when too many wait
}

func (q Queue) placeOf(run string) int {
	if q.Place == nil {
		return 0
	}
	return q.Place(run)
}

func (q Queue) allPlaces() map[string]int {
	if q.Places == nil {
		return nil
	}
	return q.Places()
}

func (q Queue) checkFull() error {
	if q.Full == nil {
		return nil
	}
	return q.Full()
}
