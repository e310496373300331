package local_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/internal/test/leaks"
	"github.com/troupe-run/troupe/mailbox"
)

// killedDir names the directory of the process that TestAcknowledgedAppendsSurviveAKill kills.
const killedDir = "TROUPE_TEST_KILLED_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedDir); dir != "" {
		appendUntilKilled(dir)
	}
	leaks.Main(m)
}

// appendUntilKilled appends to many logs, and prints each entry once it is acknowledged.
func appendUntilKilled(dir string) {
	s, err := local.Open(context.Background(), local.Config{Dir: dir})
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	var all sync.WaitGroup
	for i := range 50 {
		at := mailbox.At("run", fmt.Sprintf("a%d", i))
		all.Go(func() {
			n := 0
			err := s.Read(context.Background(), at, 0, 0, func(mailbox.Message) error { n++; return nil })
			for ; err == nil; n++ {
				if _, err = mailbox.Put(context.Background(), s, at, fmt.Appendf(nil, "%d%s", n, strings.Repeat(" ", 1000))); err == nil {
					out.Lock()
					fmt.Printf("%s %d\n", at, n)
					out.Unlock()
				}
			}
			panic(err)
		})
	}
	all.Wait()
}

// TestAcknowledgedAppendsSurviveAKill kills a process that appends: what it printed as acknowledged is there, in order, and
// without gaps.
func TestAcknowledgedAppendsSurviveAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acked := map[mailbox.Address]int{}
	for round := range local.Sampled(9) {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), killedDir+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines, killAt := 0, 500+round*3000
		for in := bufio.NewScanner(out); in.Scan(); {
			var at mailbox.Address
			var n int
			if _, err := fmt.Sscanf(in.Text(), "%s %d", &at, &n); err != nil {
				continue // the line was cut off
			}
			acked[at] = max(acked[at], n+1)
			if lines++; lines == killAt {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Wait(); err == nil {
			t.Error("the process has ended by itself")
		}
		s := openStore(t, local.Config{Dir: dir})
		for at, least := range acked {
			texts := readTexts(t, s, at)
			for n, text := range texts {
				if strings.TrimSpace(text) != fmt.Sprint(n) {
					t.Fatalf("round %d: entry %d of %s is %.20q", round, n, at, text)
				}
			}
			if len(texts) < least {
				t.Errorf("round %d: %s has %d entries, %d were acknowledged", round, at, len(texts), least)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
