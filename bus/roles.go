package bus

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// Role is who somebody is to the embedded server; it is also the user name.
type Role string

const (
	// RoleNode is the owner: it may do everything.
	RoleNode Role = "node"
	// RoleService answers requests from outside. A request names the subject of
	// its own answer, so this role may publish to the inboxes of clients only: a client
	// that asks for the answer in a log would write an entry, one that asks for it in an
	// inbox of the node would acknowledge an entry.
	RoleService Role = "service"
	// RoleClient is a later command of the same user, by node.json.
	RoleClient Role = "client"
	// RoleObserver reads events, by the nats CLI context that the server writes. It
	// publishes nothing, so nothing passes from one observer to another.
	RoleObserver Role = "observer"
	// roleAnyone is a connection without a credential. There is such a user only where
	// access was opened.
	roleAnyone Role = "anyone"
)

var roles = []Role{RoleNode, RoleService, RoleClient, RoleObserver}

// WatcherSubsMax is how many subscriptions one connection of an observer may have.
const WatcherSubsMax = 64

// watchers is the account of observers and of connections without a credential. Only
// events and heartbeats are imported into it, so it is apart from all other subjects
// whatever the permissions say. Where control is open, the verbs are imported too: the
// server then makes the reply subjects (serverInbox) itself, so a request without a
// credential cannot pass for one of somebody else.
const watchers = "WATCHERS"

// serverInbox begins the reply subjects that a server makes for a request from
// another account.
const serverInbox = "_R_."

// What the flags that open access say, and what is said when they are in use.
const (
	OpenWatchUsage   = "whoever can connect to the port may read the events of all runs, without a credential"
	OpenControlUsage = "whoever can connect to the port may use every verb but delete and prune as this user, without a credential: start, answer, steer and cancel runs, read transcripts and exports, change budgets and policies"
)

// OpenWarning says what is open to connections without a credential; "" if nothing is.
func OpenWarning(watch, control bool) string {
	switch {
	case control:
		return "--open-control: " + OpenControlUsage
	case watch:
		return "--open-watch: " + OpenWatchUsage
	}
	return ""
}

// InboxPrefix is where a role gets its answers. The prefixes differ so that no
// role hears another's. Connections without a credential have the usual prefix of
// NATS and share it, in an account of their own.
func InboxPrefix(role Role) string {
	if role == roleAnyone || role == RoleObserver {
		return "_INBOX"
	}
	return "_INBOX_" + string(role)
}

func inbox(role Role) string { return InboxPrefix(role) + ".>" }

// watcherAccount makes the account of observers. The library takes its limits only in
// the form of a configuration file.
func watcherAccount() (*server.Account, error) {
	var o server.Options
	err := o.ProcessConfigString(fmt.Sprintf("accounts { %s { limits { max_subscriptions: %d } } }", watchers, WatcherSubsMax))
	if err != nil {
		return nil, fmt.Errorf("account of observers: %w", err)
	}
	if len(o.Accounts) != 1 {
		return nil, fmt.Errorf("account of observers: the configuration makes %d accounts", len(o.Accounts))
	}
	return o.Accounts[0], nil
}

// separate gives the account of observers its imports, and the other one its logs:
// with several accounts the server enables JetStream in none by itself.
func (e *Embedded) separate(s *server.Server) error {
	own := s.GlobalAccount()
	if err := own.EnableJetStream(nil, nil); err != nil {
		return fmt.Errorf("enable JetStream: %w", err)
	}
	apart, err := s.LookupAccount(watchers)
	if err != nil {
		return fmt.Errorf("account of observers: %w", err)
	}
	for _, subject := range e.watched() {
		if err := own.AddStreamExport(subject, nil); err != nil {
			return fmt.Errorf("export %s: %w", subject, err)
		}
		if err := apart.AddStreamImport(own, subject, ""); err != nil {
			return fmt.Errorf("import %s: %w", subject, err)
		}
	}
	if !e.cfg.OpenControl {
		return nil
	}
	for subject, answers := range map[string]server.ServiceRespType{
		e.cfg.Names.Cmds(): server.Singleton, AgentsSubjects: server.Streamed, DiscoverySubjects: server.Streamed,
	} {
		if err := own.AddServiceExportWithResponse(subject, answers, nil); err != nil {
			return fmt.Errorf("export %s: %w", subject, err)
		}
		if err := apart.AddServiceImport(own, subject, subject); err != nil {
			return fmt.Errorf("import %s: %w", subject, err)
		}
	}
	return nil
}

// watched is what observers may hear.
func (e *Embedded) watched() []string { return []string{e.cfg.Names.Events(), HeartbeatSubjects} }

// users are the roles with their permissions. What is not allowed is refused.
func (e *Embedded) users(apart *server.Account) []*server.User {
	var users []*server.User
	for _, role := range append(roles[:len(roles):len(roles)], roleAnyone) {
		u := &server.User{Username: string(role), Password: e.secrets[role], Permissions: e.permissions(role)}
		if role == RoleObserver || role == roleAnyone {
			u.Account = apart
		}
		if role != roleAnyone || e.cfg.OpenWatch || e.cfg.OpenControl {
			users = append(users, u)
		}
	}
	return users
}

func (e *Embedded) permissions(role Role) *server.Permissions {
	names := e.cfg.Names
	publish := server.SubjectPermission{Deny: []string{">"}}
	subscribe := server.SubjectPermission{Allow: e.watched()}
	ask := func() {
		publish = server.SubjectPermission{
			Allow: []string{names.Cmds(), AgentsSubjects, DiscoverySubjects},
			Deny:  []string{HeartbeatSubjects}, // ours to send
		}
		subscribe.Allow = append(subscribe.Allow, inbox(role))
	}
	switch {
	case role == RoleNode:
		return nil
	case role == RoleService:
		publish = server.SubjectPermission{Allow: []string{inbox(RoleClient), NodeClientInbox + ".>", HeartbeatSubjects}}
		if e.cfg.OpenControl {
			publish.Allow = append(publish.Allow, serverInbox+">")
		}
		subscribe.Allow = []string{names.Cmds(), AgentsSubjects, DiscoverySubjects, inbox(RoleService)}
	case role == RoleClient:
		ask()
	case role == roleAnyone && e.cfg.OpenControl:
		ask()
		// What is gone does not come back: that takes the user's own credential.
		publish.Deny = append(publish.Deny, names.verb("delete"), names.verb("prune"))
	}
	return &server.Permissions{Publish: &publish, Subscribe: &subscribe}
}
