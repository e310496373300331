package embedded

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

var roles = []bus.Role{bus.RoleNode, bus.RoleService, bus.RoleClient, bus.RoleObserver}

// WatcherSubsMax is how many subscriptions one connection of an observer may have.
const WatcherSubsMax = 64

// watchers is the account of observers and of connections without a credential. Only events
// and heartbeats are imported into it, so it is isolated from all other subjects whatever the
// permissions say. With open control, the verbs are imported, too: the server then makes the
// reply subjects (bus.ServerInbox) itself, so a request without a credential cannot
// impersonate another client.
const watchers = "WATCHERS"

func inboxSubjects(role bus.Role) string { return bus.InboxPrefix(role) + ".>" }

// watcherAccount makes the account of observers. The library accepts its limits only in the
// form of a configuration file.
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

// configureAccounts gives the account of observers its imports, and the other account JetStream: with
// several accounts the server enables JetStream in none of them by itself.
func (e *Server) configureAccounts(s *server.Server) error {
	own := s.GlobalAccount()
	if err := own.EnableJetStream(nil, nil); err != nil {
		return fmt.Errorf("enable JetStream: %w", err)
	}
	apart, err := s.LookupAccount(watchers)
	if err != nil {
		return fmt.Errorf("account of observers: %w", err)
	}
	subjects := e.observerSubjects()
	if e.cfg.OpenControl {
		subjects = append(subjects, e.cfg.Names.ContentSubject(e.cfg.Names.AllEvents()))
	}
	for _, subject := range subjects {
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
		e.cfg.Names.AllCommands(): server.Singleton, names.AgentsSubjects: server.Streamed, names.DiscoverySubjects: server.Streamed,
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

// observerSubjects lists the subjects that observers may subscribe to.
func (e *Server) observerSubjects() []string {
	return []string{e.cfg.Names.AllEvents(), names.HeartbeatSubjects}
}

// roleUsers lists the roles with their permissions. Everything not allowed is refused.
func (e *Server) roleUsers(apart *server.Account) []*server.User {
	var users []*server.User
	for _, role := range append(roles[:len(roles):len(roles)], bus.RoleAnyone) {
		u := &server.User{Username: string(role), Password: e.secrets[role], Permissions: e.rolePermissions(role)}
		if role == bus.RoleObserver || role == bus.RoleAnyone {
			u.Account = apart
		}
		if role != bus.RoleAnyone || e.cfg.OpenWatch || e.cfg.OpenControl {
			users = append(users, u)
		}
	}
	return users
}

func (e *Server) rolePermissions(role bus.Role) *server.Permissions {
	subjects := e.cfg.Names
	publish := server.SubjectPermission{Deny: []string{">"}}
	subscribe := server.SubjectPermission{Allow: e.observerSubjects()}
	ask := func() {
		publish = server.SubjectPermission{
			Allow: []string{subjects.AllCommands(), names.AgentsSubjects, names.DiscoverySubjects},
			Deny:  []string{names.HeartbeatSubjects}, // only nodes send them
		}
		subscribe.Allow = append(subscribe.Allow, inboxSubjects(role), subjects.ContentSubject(subjects.AllEvents()))
	}
	switch {
	case role == bus.RoleNode:
		return nil
	case role == bus.RoleService:
		publish = server.SubjectPermission{Allow: []string{inboxSubjects(bus.RoleClient), bus.NodeClientInbox + ".>", names.HeartbeatSubjects}}
		if e.cfg.OpenControl {
			publish.Allow = append(publish.Allow, bus.ServerInbox+">")
		}
		subscribe.Allow = []string{subjects.AllCommands(), names.AgentsSubjects, names.DiscoverySubjects, inboxSubjects(bus.RoleService)}
	case role == bus.RoleClient:
		ask()
		// answers to questions of agents of other programs
		publish.Allow = append(publish.Allow, subjects.AllTriggers(), bus.ServerInbox+">")
	case role == bus.RoleAnyone && e.cfg.OpenControl:
		ask()
		// Deletion is irreversible, so it requires the user's own credential. The node itself refuses their new schedules,
		// because the verb is that of runs.
		publish.Deny = append(publish.Deny, subjects.CommandPrefix()+".delete", subjects.CommandPrefix()+".prune", names.OwnedCommands(subjects))
	}
	return &server.Permissions{Publish: &publish, Subscribe: &subscribe}
}
