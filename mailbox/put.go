package mailbox

import "context"

// Put appends and waits for the result.
func Put(ctx context.Context, p Post, to Address, data []byte) (place uint64, err error) {
	type answer struct {
		place uint64
		err   error
	}
	got := make(chan answer, 1)
	p.Append(ctx, to, data, func(place uint64, err error) { got <- answer{place, err} })
	a := <-got
	return a.place, a.err
}
