package wiretest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// CheckLists checks that no list of an event, however long, takes much more memory than the
// event itself. Each event has a %s in place of the elements of a list. It measures what the
// process allocates, so nothing else may run at the same time.
func CheckLists(t *testing.T, d Dialect, events ...string) {
	t.Helper()
	for _, event := range events {
		for _, element := range []string{"{}", "null", "0"} {
			list := element + strings.Repeat(","+element, (modelhttp.MaxLine-len(event))/(len(element)+1)-1)
			c := startServer(t, d, Stream([]string{fmt.Sprintf(event, list)}), modelhttp.Timeouts{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.Complete(t.Context(), Request(), nil)
			runtime.ReadMemStats(&after)
			const most = 16 * modelhttp.MaxLine // the server, the buffers of the parser and the event
			if spent := after.TotalAlloc - before.TotalAlloc; spent > most {
				t.Errorf("%s of %s: %d bytes were allocated, at most %d", event, element, spent, most)
			}
			if e := modelError(t, err); e.Class != model.Undecodable || !strings.Contains(e.Message, "elements") {
				t.Errorf("%s of %s: %+v", event, element, e)
			}
		}
	}
}
