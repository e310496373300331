package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	native "github.com/nats-io/nats.go/jetstream"
)

// Kinds of losses of power.
const (
	powerAll = "power" // of all servers at once
	// powerOne has the shape of an incident that was reported of three replicas: one server is
	// frozen; of the other two one loses power and the other freezes; the first thaws. Then the
	// servers with only synced entries form a majority.
	powerOne = "shape"
)

// cutPower cuts the power of the servers.
func (h *serverFaults) cutPower() {
	random := rand.New(rand.NewPCG(h.t.o.seed, 3))
	for n := range h.t.o.power + h.t.o.shapes {
		time.Sleep(h.t.o.every/2 + time.Duration(random.Int64N(int64(h.t.o.every))))
		b := &fault{no: n + 1, kind: powerAll, at: time.Now()}
		h.t.observer.faultBegins(b)
		var err error
		if n < h.t.o.power {
			err = h.servers.cutPower()
		} else {
			b.kind = powerOne
			err = h.servers.shapePower(random)
		}
		h.t.observer.faultEnds(b)
		if err != nil {
			h.t.found.add("%s: %v", b.kind, err)
			return
		}
		fmt.Printf("%3d | %8v | %-6s |        | %4d | all well again after %v\n", b.no, b.at.Sub(h.t.began).Round(time.Millisecond), b.kind,
			h.t.load.countEnded(), time.Since(b.at).Round(time.Millisecond))
	}
}

// cutPower cuts the power of all servers.
func (s *servers) cutPower() error {
	if err := s.losePower(s.list...); err != nil {
		return err
	}
	for _, one := range s.list {
		if err := s.startServer(one); err != nil {
			return err
		}
	}
	return s.awaitAll()
}

// failover is longer than servers take to elect another leader.
const failover = 15 * time.Second

func (s *servers) shapePower(random *rand.Rand) error {
	order := random.Perm(len(s.list))
	first, second, third := s.list[order[0]], s.list[order[1]], s.list[order[2]]
	signal := func(one *natsServer, sig syscall.Signal) error { return one.cmd.Process.Signal(sig) }
	if err := signal(first, syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(failover)
	err := errors.Join(s.losePower(second), signal(third, syscall.SIGSTOP), signal(first, syscall.SIGCONT), s.startServer(second))
	time.Sleep(failover)
	if err := errors.Join(err, signal(third, syscall.SIGCONT)); err != nil {
		return err
	}
	return s.awaitAll()
}

// runPowerLoss is a scenario without nodes: servers lose power while the recorder appends. In
// the control the servers use their own sync interval, and entries must be lost.
func runPowerLoss(o options) (err error) {
	dir, err := os.MkdirTemp("", "troupe-chaos-")
	if err != nil {
		return err
	}
	defer cleanOnSignal(dir, o.keep)()
	defer func() {
		if err != nil && !errors.Is(err, errNoDisks) {
			fmt.Println("kept, with what the servers said:", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	node, err := givenOrBuilt(o.node, dir, "troupe-node", "node")
	if err != nil {
		return err
	}
	s, err := newServers(o, dir, max(o.servers, 1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.openAll(node); err != nil {
		return err
	}
	var lost, cuts, losing int
	random := rand.New(rand.NewPCG(o.seed, 3))
	for cuts < o.power {
		gone, acknowledged, err := s.recordAndCut(o, random)
		if err != nil {
			return err
		}
		cuts++
		lost += gone
		if gone > 0 {
			losing++
		}
		fmt.Printf("%3d | %6d acknowledged, %d lost\n", cuts, acknowledged, gone)
	}
	fmt.Printf("%d losses of power of %d servers (sync_interval: %s): %d entries lost, in %d of them\n", cuts, len(s.list), s.syncInterval(), lost, losing)
	switch {
	case o.lazy && lost == 0:
		return fmt.Errorf("the control lost nothing: this test cannot see any loss")
	case !o.lazy && lost > 0:
		return errBroken
	}
	return nil
}

func (s *servers) syncInterval() string {
	if s.o.lazy {
		return "2m, the server's own"
	}
	return "always"
}

// recordAndCut records for a while, cuts all power, and compares. An acknowledgement after the cut
// counts, too: there should be none.
func (s *servers) recordAndCut(o options, random *rand.Rand) (lost, acknowledged int, err error) {
	r, err := startRecorder(s, len(s.list))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.closeAll()) }()
	time.Sleep(o.every/2 + time.Duration(random.Int64N(int64(o.every))))
	if err := s.cutPower(); err != nil {
		return 0, 0, err
	}
	r.endAppends()
	k, err := r.compareLogs(r.post)
	if o.lazy && errors.Is(err, native.ErrStreamNotFound) {
		return k.acknowledged, k.acknowledged, nil // the logs themselves are gone
	}
	if err != nil {
		led, unknown := s.streamLeaders()
		err = errors.Join(err, unknown, fmt.Errorf("the streams are led so: %v", led))
	}
	if k.broken > 0 && !o.lazy {
		err = errors.Join(err, fmt.Errorf("%w: %d chains broken", errBroken, k.broken))
	}
	return k.lost, k.acknowledged, err
}

// inMountNamespace runs a scenario in its own mount namespace: whatever happens, no mount
// outlives its processes.
func inMountNamespace(execute func(options) error) func(options) error {
	return func(o options) error {
		if os.Getenv(ownMark) != "" {
			if err := runCommand("mount", "--make-rprivate", "/"); err != nil {
				return reportMissing(o, fmt.Errorf("%w: %w", errNoDisks, err))
			}
			return reportMissing(o, execute(o))
		}
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command(exe, os.Args[1:]...)
		cmd.Env = append(os.Environ(), ownMark+"=1")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.SysProcAttr, err = ownMounts(); err != nil {
			return reportMissing(o, err)
		}
		err = runForwarding(cmd)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(exit.ExitCode()) // it has printed why
		}
		if err != nil {
			return reportMissing(o, fmt.Errorf("%w: %w", errNoDisks, err))
		}
		return nil
	}
}

// runForwarding runs a command and forwards signals to it, so that it ends in order.
func runForwarding(cmd *exec.Cmd) error {
	told, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(told)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		select {
		case s := <-told:
			_ = cmd.Process.Signal(s) // it may have got the signal itself, and have ended
		case <-ended:
		}
	}()
	defer close(ended)
	return cmd.Wait()
}

const ownMark = "TROUPE_CHAOS_OWN_MOUNTS"

// reportMissing reports that a machine lacks what a scenario needs: an error only if -must is set.
func reportMissing(o options, err error) error {
	if errors.Is(err, errMissing) && !o.must {
		fmt.Println(err)
		return nil
	}
	return err
}
