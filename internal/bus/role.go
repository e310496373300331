package bus

// Role is the role of a client of the embedded server; it is also the user name.
type Role string

const (
	// RoleNode is the owner: it may do everything.
	RoleNode Role = "node"
	// RoleService answers requests from outside. A request names the subject of its own
	// answer, so this role may publish to the inboxes of clients only: otherwise a client that
	// asks for the answer in a log would write an entry, and one that asks for it in an inbox
	// of the node would acknowledge an entry.
	RoleService Role = "service"
	// RoleClient is a later command of the same user, which connects by node.json.
	RoleClient Role = "client"
	// RoleObserver reads events, by the nats CLI context that the server writes. It publishes
	// nothing, so observers cannot send each other messages.
	RoleObserver Role = "observer"
	// RoleAnyone is a connection without a credential. The user exists only if access was
	// opened.
	RoleAnyone Role = "anyone"
)

// InboxPrefix is the prefix of a role's reply subjects. The prefixes differ so that no role
// can read another's replies. Connections without a credential share the usual prefix of
// NATS, in an account of their own.
func InboxPrefix(role Role) string {
	if role == RoleAnyone || role == RoleObserver {
		return "_INBOX"
	}
	return "_INBOX_" + string(role)
}
