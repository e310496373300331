package control

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// TestAListOfABusyIndexHoldsEveryRunOnce: nodes write rows while they are read.
func TestAListOfABusyIndexHoldsEveryRunOnce(t *testing.T) {
	t.Parallel()
	const runs = 1000
	c := listStand(t, runs)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			run := fmt.Sprintf("r%04d", i/2%50) // each row every 100 writes, the first and the last of the index in turns
			if i%2 == 1 {
				run = fmt.Sprintf("r%04d", runs-1-i/2%50)
			}
			if err := c.cfg.Runs.Change(t.Context(), run, func(info *client.RunInfo) { info.Node = fmt.Sprint(i) }); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for round := range 40 {
		rows, err := c.cfg.Runs.ListRows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		times := map[string]int{}
		for _, row := range rows {
			times[row.RunID]++
		}
		for i := range runs {
			if run := fmt.Sprintf("r%04d", i); times[run] != 1 {
				t.Errorf("list %d shows %s %d times", round, run, times[run])
			}
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
