package bus

import (
	"github.com/nats-io/nats-server/v2/server"
)

// Role is who somebody is to the embedded server; it is also the user name.
type Role string

const (
	// RoleNode is the owner: it may do everything.
	RoleNode Role = "node"
	// RoleService answers requests from outside. A request names the subject of
	// its own answer, so this role may publish to the inboxes of clients and observers
	// only: an observer who asks for the answer in a log would write an entry, one who
	// asks for it in an inbox of the node would acknowledge an entry.
	RoleService Role = "service"
	// RoleClient is a later command of the same user, by node.json.
	RoleClient Role = "client"
	// RoleObserver is everybody on this machine, without a password.
	RoleObserver Role = "observer"
)

var roles = []Role{RoleNode, RoleService, RoleClient, RoleObserver}

// InboxPrefix is where a role gets its answers. The prefixes differ so that no
// role hears another's; observers have the usual one and share it.
func InboxPrefix(role Role) string {
	if role == RoleObserver {
		return "_INBOX"
	}
	return "_INBOX_" + string(role)
}

func inbox(role Role) string { return InboxPrefix(role) + ".>" }

// users are the roles with their permissions. What is not allowed is refused.
func (e *Embedded) users() []*server.User {
	var users []*server.User
	for _, role := range roles {
		users = append(users, &server.User{
			Username: string(role), Password: e.secrets[role], Permissions: e.permissions(role),
		})
	}
	return users
}

func (e *Embedded) permissions(role Role) *server.Permissions {
	names := e.cfg.Names
	var publish, subscribe server.SubjectPermission
	switch role {
	case RoleNode:
		return nil
	case RoleService:
		publish.Allow = []string{inbox(RoleObserver), inbox(RoleClient), HeartbeatSubjects}
		subscribe.Allow = []string{names.Cmds(), AgentsSubjects, DiscoverySubjects, inbox(RoleService)}
	default:
		publish.Allow = []string{names.Cmds(), AgentsSubjects, DiscoverySubjects}
		// Heartbeats are ours to send.
		publish.Deny = []string{HeartbeatSubjects}
		if role == RoleObserver {
			// What is gone does not come back: that takes the user's own credential.
			publish.Deny = append(publish.Deny, names.verb("delete"), names.verb("prune"))
		}
		if role == RoleObserver && e.cfg.WatchOnly {
			publish.Allow = []string{DiscoverySubjects}
		}
		subscribe.Allow = []string{names.Events(), HeartbeatSubjects, DiscoverySubjects, inbox(role)}
	}
	return &server.Permissions{Publish: &publish, Subscribe: &subscribe}
}
