package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// keepEvidence writes what the analysis of a broken promise needs into the directory of the
// scenario: every problem in full, and the logs of its runs. What the nodes wrote to stderr is
// there already.
func (t *testCluster) keepEvidence() error {
	t.found.mu.Lock()
	defer t.found.mu.Unlock()
	if len(t.found.list) == 0 {
		return nil
	}
	dir := filepath.Join(t.files.dir, "problems")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	list := strings.Join(t.found.list, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "problems.txt"), []byte(list), 0o644); err != nil {
		return err
	}
	runs := slices.Clone(t.found.runs)
	slices.Sort(runs)
	return t.withPost(func(post *jetstream.Post) error {
		for _, run := range slices.Compact(runs) {
			text, err := printLogs(post, run)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, run+".log"), []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}

// printLogs is the logs of a run as text: one line for each item, log by log.
func printLogs(post *jetstream.Post, run string) (string, error) {
	lines, ordinals := map[mailbox.Address][]string{}, map[mailbox.Address]int{}
	err := post.ReadRun(context.Background(), run, func(m mailbox.Message) error {
		ordinals[m.To]++
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			lines[m.To] = append(lines[m.To], fmt.Sprintf("%4d %d does not decode: %v", ordinals[m.To], m.At, err))
			return nil
		}
		for _, item := range e.Items {
			lines[m.To] = append(lines[m.To], fmt.Sprintf("%4d place %d at %d from %q epoch %d-%d start %s floor %d: %s %s (%d,%d) %s", ordinals[m.To], m.Place, m.At,
				e.From, e.Epoch.Lease, e.Epoch.Start, e.Start, e.Floor, item.Kind, item.ID, item.N, item.I, renderBody(item.Body)))
		}
		return nil
	})
	var text strings.Builder
	for _, at := range sortedKeys(lines) {
		fmt.Fprintf(&text, "== %s\n%s\n", at, strings.Join(lines[at], "\n"))
	}
	return text.String(), err
}

// renderBody renders the body of an item for people.
func renderBody(raw []byte) string {
	var value any
	if err := mailbox.Unmarshal(raw, &value); err != nil {
		return err.Error()
	}
	return fmt.Sprint(value)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	list := make([]K, 0, len(m))
	for at := range m {
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}
