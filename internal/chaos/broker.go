package main

import (
	"strings"

	"github.com/troupe-run/troupe/bus"
)

// broker is where the nodes of a play meet.
type broker interface {
	// options are how somebody connects in a role; node is the name of a node, or "".
	options(role bus.Role, node string) bus.Options
	Close() error
}

// alone is one server in this process, which nothing happens to.
type alone struct{ *bus.Embedded }

func (a alone) options(role bus.Role, _ string) bus.Options {
	if role == bus.RoleObserver { // by the port, as observers come
		user, password := a.Credential(role)
		return bus.Options{Servers: "nats://" + user + ":" + password + "@" + strings.TrimPrefix(a.URL(), "nats://"), InboxPrefix: bus.InboxPrefix(role)}
	}
	o := a.Options(role)
	o.InboxPrefix = bus.InboxPrefix(role)
	return o
}

// variables are options as the environment of a process. NATS_CONTEXT of whoever
// plays must not count.
func variables(o bus.Options) []string {
	return []string{"NATS_CONTEXT=", bus.OwnerVariable + "=" + o.Owner, "NATS_URL=" + o.Servers, "NATS_USER=" + o.User, "NATS_PASSWORD=" + o.Password,
		"NATS_NKEY=" + o.NKey, "NATS_CA=" + o.TLSCA}
}

// doors are the same for the connection of a node that answers requests.
func doors(o bus.Options) []string {
	return []string{"TROUPE_SERVICE_USER=" + o.User, "TROUPE_SERVICE_PASSWORD=" + o.Password, "TROUPE_SERVICE_NKEY=" + o.NKey}
}
