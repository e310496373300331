package main

import (
	"os"
	"strings"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// broker is the NATS server or servers of a scenario.
type broker interface {
	// options returns how a client in a role connects; node is the name of a node, or "".
	options(role bus.Role, node string) bus.Options
	// processes returns the ids of the processes of the servers.
	processes() []int
	Close() error
}

// singleServer is one server in this process, without faults.
type singleServer struct{ *embedded.Server }

func (a singleServer) options(role bus.Role, _ string) bus.Options {
	if role == bus.RoleObserver { // by the port, as observers come
		user, password := a.Credential(role)
		return bus.Options{Servers: "nats://" + user + ":" + password + "@" + strings.TrimPrefix(a.URL(), "nats://"), InboxPrefix: bus.InboxPrefix(role)}
	}
	o := a.ConnectOptions(role)
	o.InboxPrefix = bus.InboxPrefix(role)
	return o
}

func (a singleServer) processes() []int { return []int{os.Getpid()} }

// natsVariables returns options as the environment of a process. The NATS_CONTEXT of the caller
// must not apply.
func natsVariables(o bus.Options) []string {
	return []string{"NATS_CONTEXT=", bus.OwnerVariable + "=" + o.Owner, "NATS_URL=" + o.Servers, "NATS_USER=" + o.User, "NATS_PASSWORD=" + o.Password,
		"NATS_NKEY=" + o.NKey, "NATS_CA=" + o.TLSCA}
}

// serviceVariables returns the same for the connection on which a node answers requests.
func serviceVariables(o bus.Options) []string {
	return []string{"TROUPE_SERVICE_USER=" + o.User, "TROUPE_SERVICE_PASSWORD=" + o.Password, "TROUPE_SERVICE_NKEY=" + o.NKey}
}
