package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// runDamage kills runs as run does, and before it resumes them it flips a bit in a file of the
// store, cuts off a file's end, or removes entries from one log: its tail, its head or all of it.
// The outcome must be reported: the run ends as if nothing had happened, it ends log_damaged, it
// asks the user, or the store does not open. Then it must be possible to end and delete the run.
func runDamage(o options) error { return inTestDir(o, playRots) }

func playRots(o options, p *provider, dir string, whole time.Duration) error {
	fmt.Printf("seed %d; a run that nobody kills takes %v\n", o.seed, whole.Round(time.Millisecond))
	fmt.Println("  # | what was done                                                | outcome       | ledger | doubles | problem")
	ends, doubles, problems := map[string]int{}, 0, 0
	for d := range damageRuns(o, p, dir, whole) {
		fmt.Printf("%3d | %-60s | %-13s | %2d/%-3d | %7d | %s\n", d.n, d.what, d.outcome, d.counted, d.expected, d.doubles, d.problem)
		ends[d.outcome]++
		doubles += d.doubles
		if d.problem != "" || d.doubles > 0 {
			problems++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("%d files damaged: %v, %d effects twice, %d problems; %d requests, %d malformed\n", o.rots, ends, doubles, problems, p.requests, len(p.bad))
	if problems+len(p.bad) > 0 {
		return errBroken
	}
	return nil
}

// rotsAtOnce is how many runs are damaged at a time.
const rotsAtOnce = 4

// damagedRun is the outcome of the n-th run.
type damagedRun struct {
	killedRun
	n    int
	what string
}

// damageRuns damages runs, each in a store of its own. The seed determines when each is killed
// and what is damaged.
func damageRuns(o options, p *provider, dir string, whole time.Duration) <-chan damagedRun {
	runs, next := make(chan damagedRun), atomic.Int64{}
	var workers sync.WaitGroup
	for range rotsAtOnce {
		workers.Go(func() {
			for n := next.Add(1); n <= int64(o.rots); n = next.Add(1) {
				random, at := rand.New(rand.NewPCG(o.seed, uint64(n))), filepath.Join(dir, fmt.Sprintf("run%d", n))
				d := damagedRun{n: int(n)}
				d.killedRun, d.what = rotOne(o, p, at, random, time.Duration(random.Int64N(int64(whole))))
				if d.problem == "" && d.doubles == 0 && !o.keep {
					if err := os.RemoveAll(at); err != nil {
						d.problem = err.Error()
					}
				}
				runs <- d
			}
		})
	}
	go func() {
		workers.Wait()
		close(runs)
	}()
	return runs
}

// rotOne kills one run, damages a file, and resumes it.
func rotOne(o options, p *provider, dir string, random *rand.Rand, at time.Duration) (r killedRun, what string) {
	r.expected = o.turns - 1 + 2*helperTurns // the root delegates twice
	s, err := newTestDir(o, p, dir)
	if err != nil {
		r.problem = err.Error()
		return r, ""
	}
	cmd := s.startRun()
	if err := cmd.Start(); err != nil {
		r.problem = err.Error()
		return r, ""
	}
	time.Sleep(at)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	_ = cmd.Wait()
	entries, err := readLogs(s)
	if err != nil {
		r.problem = "logs: " + err.Error()
		return r, ""
	}
	if what, err = damageStore(s, entries, random); err != nil {
		r.problem = err.Error()
		return r, what
	}
	was := filepath.Join(s.dir, "damaged") // as it is before a program reads it
	if err := copyFiles(was, filepath.Join(s.dir, "state")); err != nil {
		r.problem = err.Error()
		return r, what
	}
	cmd = s.newCommand("--dir", s.workDir(), "--agents", s.agentsDir(), "--resume", s.run)
	if !entries.isOpened() {
		cmd = s.startRun()
	}
	ctx, cancel := context.WithTimeout(context.Background(), resumeTimeout)
	defer cancel()
	r.outcome, r.problem = awaitResult(ctx, cmd)
	r.counted, r.doubles = s.countLedger()
	switch {
	case r.outcome == "completed" && r.counted != r.expected:
		r.problem = fmt.Sprintf("completed with %d of %d effects", r.counted, r.expected)
	case r.outcome == "none":
		// The run is missing, or the store does not open: both were reported.
		r.outcome = "refused"
		if strings.Contains(r.problem, "error: ") || strings.Contains(r.problem, `"error"`) {
			r.problem = ""
		}
	case slices.Contains([]string{"completed", "log_damaged", "needs_human", "resume_unsafe"}, r.outcome):
		r.problem = ""
	}
	if r.outcome != "refused" {
		r.problem += s.removeRun(r.outcome)
	}
	return r, what
}

// copyFiles copies a directory without the socket that a killed server leaves.
func copyFiles(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, rel), data, 0o600)
		}
		return err
	})
}

// damageFile flips one bit in a file of the logs or leases of a state directory, or cuts off its end.
func damageFile(dir string, random *rand.Rand) (what string, err error) {
	var files []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		inFiles := filepath.Dir(path) == statedir.LogsDir(dir) && !strings.HasPrefix(d.Name(), "spare-")
		if err != nil || d.IsDir() || !inFiles && !strings.Contains(path, "TROUPE_BOX_") && !strings.Contains(path, "KV_") {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			files = append(files, path)
			if inFiles || strings.HasSuffix(path, ".blk") {
				files = append(files, path, path, path) // the entries themselves
			}
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return "", errors.Join(err, fmt.Errorf("%d files in %s", len(files), dir))
	}
	path := files[random.IntN(len(files))]
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return "", err
	}
	parts := strings.Split(rel, string(filepath.Separator))
	name := strings.Join(parts[max(0, len(parts)-3):], "/")
	if random.IntN(3) == 0 {
		left := random.Int64N(int64(len(data)))
		return fmt.Sprintf("%s cut to %d of %d", name, left, len(data)), os.Truncate(path, left)
	}
	bit := random.IntN(8 * len(data))
	data[bit/8] ^= 1 << (bit % 8)
	return fmt.Sprintf("%s bit %d of %d", name, bit, 8*len(data)), os.WriteFile(path, data, 0o600)
}
