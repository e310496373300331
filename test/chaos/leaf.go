package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/bus"
)

// writeLeafConfig writes the configuration of the server of observers: deploy/nats/observers.conf with addresses and
// directories of this scenario.
func (s *servers) writeLeafConfig() error {
	text, err := readDeployed("observers.conf")
	if err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	s.leaf = &natsServer{name: "o1", client: ports[0], monitor: ports[1]}
	const listen = `listen: "0.0.0.0:4222"`
	if !strings.Contains(text, listen) {
		return fmt.Errorf("deploy/nats/observers.conf has no %s any more", listen)
	}
	text = strings.ReplaceAll(text, "/etc/nats/", s.dir+"/")
	text = strings.Replace(text, listen, fmt.Sprintf("listen: \"%s:%d\"\nhttp: \"%s:%d\"", loopback, s.leaf.client, loopback, s.leaf.monitor), 1)
	return os.WriteFile(filepath.Join(s.dir, s.leaf.name+".conf"), []byte(text), 0o644)
}

// startLeaf starts the server of observers with the low priority that its file recommends on a machine that has other
// work.
func (s *servers) startLeaf() error {
	seed, err := os.ReadFile(s.seeds[bus.RoleObserver])
	if err != nil {
		return err
	}
	command := exec.Command("nice", "-n", watcherNice, s.bin, "-c", filepath.Join(s.dir, s.leaf.name+".conf"))
	command.Env = append(os.Environ(), append(s.keys, "NAME="+s.leaf.name, "TROUPE_OBSERVER_SEED="+strings.TrimSpace(string(seed)),
		fmt.Sprintf("LEAF_URL=tls://%s:%d", loopback, s.list[0].leaves))...)
	return errors.Join(s.runServer(s.leaf, command), s.awaitServer(s.leaf))
}

// processes implements broker.
func (s *servers) processes() (ids []int) {
	for _, one := range s.list {
		ids = append(ids, one.cmd.Process.Pid)
	}
	if s.leaf != nil {
		ids = append(ids, s.leaf.cmd.Process.Pid)
	}
	return ids
}
