package wiretest

import (
	"net/http/httptest"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// allocationRuns is how many calls are averaged.
const allocationRuns = 20

// AllocationLimits are how often a client may allocate. They are counts, which hardly differ from machine to machine.
type AllocationLimits struct {
	Call  float64 // of a small request, with the server, which is in the same process
	Turn  float64 // for each turn that a transcript has more
	Piece float64 // for each piece of text that a reply has more
}

// CheckAllocations fails if a client allocates more often than the limits.
func CheckAllocations(t *testing.T, d Dialect, most AllocationLimits) {
	call := countAllocations(t, d, Request(), d.Calls)
	for _, c := range []struct {
		what      string
		got, most float64
	}{
		{"a small call", call, most.Call},
		{"a turn of the transcript", (countAllocations(t, d, typicalRequest(), d.Calls) - call) / typicalTurns, most.Turn},
		{"a piece of text", (countAllocations(t, d, Request(), longReply(d)) - countAllocations(t, d, Request(), d.Hello)) / (pieces - 1), most.Piece},
	} {
		if most := c.most + lostByPools; c.got > most {
			t.Errorf("%s makes %.2f allocations, at most %.2f", c.what, c.got, most)
		}
	}
}

func countAllocations(t *testing.T, d Dialect, request model.Request, events []string) float64 {
	t.Helper()
	s := httptest.NewServer(Stream(events))
	defer s.Close()
	client, err := d.New(s.URL, modelhttp.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	return testing.AllocsPerRun(allocationRuns, func() {
		if _, err := client.Complete(t.Context(), request, func(model.Delta) {}); err != nil {
			t.Fatal(err)
		}
	})
}
