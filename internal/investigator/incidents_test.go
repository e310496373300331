package investigator_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAnIncidentIsCountedOnceAndNamesItsException: a failing line and the stack trace behind it are one failure.
func TestAnIncidentIsCountedOnceAndNamesItsException(t *testing.T) {
	const python = "Traceback (most recent call last):\n  File \"job.py\", line 7, in run\n    raise ValueError(\"bad\")\nValueError: bad amount %d\n"
	const java = "java.lang.IllegalStateException: closed\n\tat shop.Job.run(Job.java:7)\n\tat shop.MyException.of(MyException.java:3)\nCaused by: java.io.IOException: gone\n\t... 3 more\n"
	for name, c := range map[string]struct {
		text  func(i int) string
		wants []string
	}{
		"Python": {func(i int) string { return fmt.Sprintf("ERROR job %d failed\n"+python, i, i) },
			[]string{"20×: ERROR job <n> failed — ValueError: bad amount <n>**", "20 failing lines in 1 form"}},
		"Python without a log line": {func(i int) string { return fmt.Sprintf("INFO next\n"+python, i) },
			[]string{"20×: ValueError: bad amount <n>**", "20 failing lines in 1 form"}},
		"two exceptions": {func(i int) string {
			if i%4 == 0 {
				return fmt.Sprintf("ERROR job %d failed\nTraceback (most recent call last):\n  File \"job.py\", line 9, in run\nKeyError: 'price'\n", i)
			}
			return fmt.Sprintf("ERROR job %d failed\n"+python, i, i)
		}, []string{"20×: ERROR job <n> failed — ValueError: bad amount <n> (15×), KeyError: 'price' (5×)**", "20 failing lines in 1 form"}},
		"Java": {func(i int) string { return fmt.Sprintf("ERROR job %d failed\n"+java, i) },
			[]string{"20×: ERROR job <n> failed — java.lang.IllegalStateException: closed**", "20 failing lines in 1 form"}},
	} {
		dir := t.TempDir()
		var b strings.Builder
		for i := range 20 {
			fmt.Fprintf(&b, "2026-01-02 03:%02d:00 INFO start\n2026-01-02 03:%02d:01 %s", i, i, c.text(i))
		}
		writeFile(t, dir, "app.log", b.String())
		newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
		md := readFile(t, dir, "report.md")
		for _, want := range c.wants {
			if !strings.Contains(md, want) || strings.Contains(md, "Traceback") {
				t.Errorf("%s: no %q in\n%s", name, want, md)
			}
		}
	}
}

func TestTheNumberOfFailingLinesIsSaid(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for text, n := range map[string]int{"disk is full": 294, "cannot reach the bank": 202, "queue is gone": 102} {
		b.WriteString(strings.Repeat("2026-01-02 03:04:05 ERROR "+text+"\n2026-01-02 03:04:05 INFO ok\n", n))
	}
	writeFile(t, dir, "app.log", b.String())
	text := newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	for where, got := range map[string]string{"answer": text, "report": readFile(t, dir, "report.md")} {
		if !strings.Contains(got, "598 failing lines in 3 forms.") {
			t.Errorf("the %s has no total:\n%s", where, got)
		}
	}
}
