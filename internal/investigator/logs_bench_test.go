package investigator_test

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkJSONLogs investigates a log of 60,000 JSON lines.
func BenchmarkJSONLogs(b *testing.B) {
	dir := b.TempDir()
	var lines strings.Builder
	for i := range 60_000 {
		level, says := "info", "served request"
		if i%97 == 3 {
			level, says = "error", "job failed: refused"
		}
		fmt.Fprintf(&lines, `{"time":"2026-01-02T%02d:%02d:%02dZ","level":"%s","msg":"%s","request_id":"q%05d","ms":%d}`+"\n", i/3600%24, i/60%60, i%60, level, says, i, i%900)
	}
	writeFile(b, dir, "app.jsonl", lines.String())
	for b.Loop() {
		newDriver(b, directoryTools(b, dir)).runAgent("coordinator", task)
	}
}
