package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// brokerFlags defines the flags of the servers and their faults.
func brokerFlags(o *options) {
	flag.IntVar(&o.servers, "servers", 0, "NATS servers as processes, set up by deploy/nats; 0: one in this process")
	flag.IntVar(&o.leaders, "leaders", 0, "how often to kill the server that leads a stream")
	flag.IntVar(&o.cuts, "cuts", 0, "how often to cut wires between nodes and servers, or between servers")
	flag.IntVar(&o.power, "power", 0, "how often all servers lose their power at once")
	flag.IntVar(&o.shapes, "shapes", 0, "how often one of three loses its power while the others freeze in turn")
	flag.IntVar(&o.rots, "rots", 0, "how many files of a store to damage: of a killed run, or of a killed server")
	flag.IntVar(&o.cycles, "cycles", 0, "with -full disk and no nodes: how often the disk beneath the server inside of a node is full for 3s")
	flag.StringVar(&o.full, "full", "", "take all room while runs go on, and give it back: of the \"streams\", or of the \"disk\" beneath the server")
	flag.DurationVar(&o.slow, "slow", 0, "how much longer than the disk each write and sync of the servers takes (strace)")
	flag.BoolVar(&o.must, "must", false, "fail where this machine cannot take the power away")
	flag.DurationVar(&o.every, "every", 30*time.Second, "time between two faults of the servers")
	flag.BoolVar(&o.lazy, "lazy", false, "servers with their own sync_interval of two minutes")
}

// servers are NATS servers in their own processes, configured by the files of deploy/nats: TLS,
// nkeys, sync_interval: always, five roles. Only addresses and directories differ.
type servers struct {
	o     options
	dir   string
	bin   string
	list  []*natsServer
	seeds map[bus.Role]string   // path of the seed of each role
	keys  []string              // variables with the public keys
	disks map[string]*lossyDisk // of each, if it is to lose its power
	wires *wireMesh             // the connections between, if they are to be cut
	leaf  *natsServer           // the server of observers, if there are many
}

// natsServer is one of them.
type natsServer struct {
	name                   string
	store                  string
	client, route, monitor int // ports
	leaves                 int // the port of servers for observers
	cmd                    *exec.Cmd
	gone                   chan struct{}
	starts                 int
}

// Patience with servers on a machine that has other work too.
const (
	serverPatience = 2 * time.Minute
	loopback       = "127.0.0.1"
)

// Roles that are none of the embedded server: roleSetup may make streams, roleSystem asks servers how they sync.
const (
	roleSetup  = bus.Role("setup")
	roleSystem = bus.Role("system")
)

// newServers writes the configuration of n servers in dir.
func newServers(o options, dir string, n int) (s *servers, err error) {
	s = &servers{o: o, dir: filepath.Join(dir, "nats"), seeds: map[bus.Role]string{}}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	if s.bin, err = buildCommand("", dir, filepath.Base(serverBinary(dir)), "github.com/nats-io/nats-server/v2"); err != nil {
		return nil, err
	}
	if err := s.makeKeys(); err != nil {
		return nil, err
	}
	if err := s.makeCertificates(); err != nil {
		return nil, err
	}
	ports, err := freePorts(4 * n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		one := &natsServer{name: fmt.Sprintf("s%d", i+1), client: ports[4*i], route: ports[4*i+1], monitor: ports[4*i+2], leaves: ports[4*i+3]}
		one.store = filepath.Join(s.dir, one.name)
		s.list = append(s.list, one)
	}
	if o.power+o.shapes > 0 {
		if err := s.mountDisks(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if o.full == fullDisk {
		if err := s.mountSmallDisks(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if o.cuts+o.trees > 0 {
		if s.wires, err = s.layWires(); err != nil {
			return nil, err
		}
	}
	for _, one := range s.list {
		if err := s.writeConfig(one); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if o.watchers > 0 {
		if err := s.writeLeafConfig(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// serverBinary is the program of the servers, which outlive the nodes.
func serverBinary(dir string) string { return filepath.Join(dir, "nats-server") }

// readDeployed reads a file of deploy/nats.
func readDeployed(name string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/troupe-run/troupe").Output()
	if err != nil {
		return "", fmt.Errorf("where the module is: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "deploy", "nats", name))
	return string(data), err
}

// clusterBlock is the part of the configuration that a single server does not have.
var clusterBlock = regexp.MustCompile(`(?s)\ncluster \{\n.*?\n\}\n`)

// writeConfig writes the configuration of one server: that of deploy/ with the addresses and
// directories of this scenario. With -lazy it has no sync_interval, so the server's default
// applies.
func (s *servers) writeConfig(one *natsServer) error {
	roles, err := readDeployed("troupe.conf")
	if err != nil {
		return err
	}
	text, err := readDeployed("server.conf")
	if err != nil {
		return err
	}
	changes := map[string]string{
		`"0.0.0.0:4222"`:   fmt.Sprintf("%q", fmt.Sprintf("%s:%d", loopback, one.client)),
		`"0.0.0.0:7422"`:   fmt.Sprintf("%q", fmt.Sprintf("%s:%d", loopback, one.leaves)),
		`"0.0.0.0:6222"`:   fmt.Sprintf("%q", fmt.Sprintf("%s:%d", loopback, one.route)),
		`"127.0.0.1:8222"`: fmt.Sprintf("%q", fmt.Sprintf("%s:%d", loopback, one.monitor)),
		"/var/lib/nats":    one.store,
		"/etc/nats/":       s.dir + "/",
	}
	if s.wires != nil {
		// No node or server may learn a way around the wires: the advertised address leads nowhere.
		changes["name: troupe\n"] = "name: troupe\n  no_advertise: true\n  advertise: \"127.0.0.1:1\"\n"
	}
	if s.o.lazy {
		changes["sync_interval: always\n"] = "\n"
	}
	if s.o.full == fullDisk { // streams reserve more than the disk has
		changes["sync_interval: always\n"] = "sync_interval: always\n  max_file_store: 100GB\n"
	}
	if len(s.list) == 1 {
		text = clusterBlock.ReplaceAllString(text, "\n")
		delete(changes, `"0.0.0.0:6222"`)
	}
	for from, to := range changes {
		if !strings.Contains(text, from) {
			return fmt.Errorf("deploy/nats/server.conf has no %s any more", strings.TrimSpace(from))
		}
		text = strings.ReplaceAll(text, from, to)
	}
	return errors.Join(os.WriteFile(filepath.Join(s.dir, one.name+".conf"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(s.dir, "troupe.conf"), []byte(roles), 0o644))
}

// startServer starts a server that is down.
func (s *servers) startServer(one *natsServer) error {
	var routes []string
	for _, other := range s.list {
		if other != one {
			routes = append(routes, fmt.Sprintf("nats://%s:%d", loopback, s.wires.serverPort(one, other)))
		}
	}
	command := append(s.slowCommand(), s.bin, "-c", filepath.Join(s.dir, one.name+".conf"))
	if len(routes) > 0 {
		command = append(command, "--routes", strings.Join(routes, ","))
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), append(s.keys, "NAME="+one.name, "HOST="+loopback)...)
	return s.runServer(one, cmd)
}

// runServer starts the process of a server.
func (s *servers) runServer(one *natsServer, cmd *exec.Cmd) error {
	one.starts++
	log, err := os.OpenFile(filepath.Join(s.dir, one.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieTogether()
	gone := make(chan struct{})
	one.cmd, one.gone = cmd, gone
	if err := cmd.Start(); err != nil {
		close(gone)
		return errors.Join(err, log.Close())
	}
	go func() {
		_ = cmd.Wait() // it was killed on purpose
		_ = log.Close()
		close(gone)
	}()
	return nil
}

// openAll starts all servers, and creates the streams as an operator would.
func (s *servers) openAll(node string) error {
	for _, one := range s.list {
		if err := s.startServer(one); err != nil {
			return err
		}
	}
	if err := s.awaitAll(); err != nil {
		return err
	}
	if s.leaf != nil {
		if err := s.startLeaf(); err != nil {
			return err
		}
	}
	until := time.Now().Add(serverPatience)
	for {
		setup := exec.Command(node, "--setup", "--replicas", fmt.Sprint(len(s.list)), "--pools", names.DefaultPool+","+names.MachinePool(machine))
		setup.Env = append(os.Environ(), natsVariables(s.options(roleSetup, ""))...)
		out, err := setup.CombinedOutput()
		if err == nil {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("setup: %w: %s", err, out)
		}
	}
}

// awaitAll waits until every server has caught up with the others.
func (s *servers) awaitAll() error {
	for _, one := range s.list {
		if err := s.awaitServer(one); err != nil {
			return err
		}
	}
	return nil
}

// awaitServer waits until one server has.
func (s *servers) awaitServer(one *natsServer) error {
	ctx, cancel := context.WithTimeout(context.Background(), serverPatience)
	defer cancel()
	for {
		select {
		case <-one.gone:
			return fmt.Errorf("server %s ended by itself: %s", one.name, s.readLog(one))
		default:
		}
		var health struct{ Status string }
		err := one.readMonitor("healthz", &health)
		if err == nil && health.Status == "ok" {
			return nil
		}
		if sleepFor(ctx, poll) != nil {
			return fmt.Errorf("server %s is not well after %v: %v %+v: %s", one.name, serverPatience, err, health, s.readLog(one))
		}
	}
}

// readLog returns the end of a server's log.
func (s *servers) readLog(one *natsServer) string {
	data, err := os.ReadFile(filepath.Join(s.dir, one.name+".log"))
	if err != nil {
		return err.Error()
	}
	const tail = 2000
	return string(data[max(0, len(data)-tail):])
}

// readMonitor reads a page of the monitor.
func (n *natsServer) readMonitor(page string, into any) error {
	c := http.Client{Timeout: 5 * time.Second}
	r, err := c.Get(fmt.Sprintf("http://%s:%d/%s", loopback, n.monitor, page))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(into)
}

// streamLeaders returns the leader of each stream, by a live server.
func (s *servers) streamLeaders() (map[string]string, error) {
	var all error
	for _, one := range s.list {
		var page struct {
			Accounts []struct {
				Streams []struct {
					Name    string
					Cluster struct{ Leader string }
				} `json:"stream_detail"`
			} `json:"account_details"`
		}
		if err := one.readMonitor("jsz?streams=true", &page); err != nil {
			all = errors.Join(all, err)
			continue
		}
		led := map[string]string{}
		for _, a := range page.Accounts {
			for _, stream := range a.Streams {
				led[stream.Name] = stream.Cluster.Leader
			}
		}
		return led, nil
	}
	return nil, all
}

// findServer returns the server of a name.
func (s *servers) findServer(name string) *natsServer {
	for _, one := range s.list {
		if one.name == name {
			return one
		}
	}
	return nil
}

// killServer kills a server, and the tracer that slows it down, and waits until it is gone.
func (s *servers) killServer(one *natsServer) error {
	if err := syscall.Kill(-one.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-one.gone
	return nil
}

// options implements broker. A node reaches the servers over its own wires, if
// there are any.
func (s *servers) options(role bus.Role, node string) bus.Options {
	var urls []string
	list := s.list
	if s.leaf != nil && role == bus.RoleObserver {
		list = []*natsServer{s.leaf}
	}
	for _, one := range list {
		urls = append(urls, fmt.Sprintf("tls://%s:%d", loopback, s.wires.clientPort(node, one)))
	}
	return bus.Options{Servers: strings.Join(urls, ","), NKey: s.seeds[role], TLSCA: filepath.Join(s.dir, "ca.crt"),
		InboxPrefix: bus.InboxPrefix(role)}
}

// Close implements broker.
func (s *servers) Close() error {
	var errs []error
	for _, one := range append(slices.Clone(s.list), s.leaf) {
		if one != nil && one.cmd != nil && one.cmd.Process != nil {
			errs = append(errs, s.killServer(one))
		}
	}
	s.wires.closeAll()
	if s.o.full == fullDisk {
		errs = append(errs, s.unmountSmallDisks())
	}
	return errors.Join(append(errs, s.unmountDisks())...)
}
