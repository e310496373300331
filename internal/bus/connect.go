// Package bus connects to NATS: options and credentials, the buckets of a node, and the proof
// of the durability that a server promises. Package names builds every subject, statedir
// manages the directory of an owner, and embedded runs the server in this process.
package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/natscontext"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

const (
	// DefaultTimeout ends an attempt to connect.
	DefaultTimeout = 5 * time.Second

	// PingEvery is the interval of pings to the server. After three pings without an answer
	// the connection moves to another server, within the TTL of leases: a network that drops
	// packets reports no error.
	PingEvery = 5 * time.Second
	pingsMax  = 2

	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond
	apiTimeout      = 5 * time.Second
)

var (
	// ErrContext: the context of the nats CLI does not exist.
	ErrContext = errors.New("bus: no such context of the nats CLI")
	// ErrKeyFile says that the file of an nkey cannot be used.
	ErrKeyFile = errors.New("bus: nkey")
	// ErrCredentials says that the server answers, but rejects these credentials.
	ErrCredentials = errors.New("bus: the NATS server refused the credentials")
	// ErrNoJetStream says that the server answers, but has no JetStream for this account.
	ErrNoJetStream = errors.New("bus: JetStream is not enabled for this account")
	// ErrNoLeader says that the server has JetStream, but JetStream or one of its streams has
	// no leader.
	ErrNoLeader = errors.New("bus: JetStream has no leader")
)

// Options name the server and the credentials; they are the flags of the nats CLI. They take
// precedence over a context.
type Options struct {
	// Servers is a comma-separated list of URLs. Default: the context's, or
	// else nats://127.0.0.1:4222.
	Servers string
	// Context is the name of a nats CLI context, or an absolute path to one.
	Context string
	// Owner is a state directory: the server is the one of the process that owns it. The
	// connection uses the socket there, which also proves the server; Servers and Context are
	// ignored.
	Owner string
	// Creds and NKey are paths of files.
	Creds, NKey string
	// User without Password is a token, as in the nats CLI.
	User, Password, Token string
	// As is the owner in whose name requests are sent: the server must let the user publish them. "": an operator.
	As string
	// TLSCert, TLSKey and TLSCA are paths of PEM files.
	TLSCert, TLSKey, TLSCA string
	// InboxPrefix is the prefix of reply subjects. Default: "_INBOX". Each connection has
	// inboxes of its own below it, with names that cannot be guessed.
	InboxPrefix string
	// Name is the name of the connection in the server's list. Default "troupe".
	Name string
	// Timeout ends an attempt to connect. Default DefaultTimeout.
	Timeout time.Duration
	// Extra are options of the client library, applied last.
	Extra []nats.Option
}

// OwnerVariable is the environment variable of Options.Owner.
const OwnerVariable = "TROUPE_OWNER"

// FromEnv returns o with unset fields filled from the environment, under the names of the
// nats CLI. getenv is os.Getenv, or a test's.
func (o Options) FromEnv(getenv func(string) string) Options {
	for name, field := range map[string]*string{
		"NATS_URL": &o.Servers, "NATS_CONTEXT": &o.Context,
		"NATS_CREDS": &o.Creds, "NATS_NKEY": &o.NKey,
		"NATS_USER": &o.User, "NATS_PASSWORD": &o.Password, "NATS_TOKEN": &o.Token,
		"NATS_CERT": &o.TLSCert, "NATS_KEY": &o.TLSKey, "NATS_CA": &o.TLSCA,
		"NATS_INBOX_PREFIX": &o.InboxPrefix, OwnerVariable: &o.Owner, "TROUPE_AS": &o.As,
	} {
		if *field == "" {
			*field = getenv(name)
		}
	}
	return o
}

// NamesServer reports whether o names a server. If not, the caller looks for a node of the state
// directory, or starts one.
func (o Options) NamesServer() bool { return o.Servers != "" || o.Context != "" || o.Owner != "" }

// IsAnonymous reports whether o holds no credential. A context may hold one, and so may a URL.
func (o Options) IsAnonymous() bool {
	return o.Context == "" && o.Creds == "" && o.NKey == "" && o.User == "" && o.Token == "" && o.TLSCert == "" && !strings.Contains(o.Servers, "@")
}

func (o Options) natsOptions() ([]nats.Option, error) {
	if o.Name == "" {
		o.Name = names.DefaultPrefix
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	options := []nats.Option{
		nats.Name(o.Name), nats.Timeout(o.Timeout),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.PingInterval(PingEvery), nats.MaxPingsOutstanding(pingsMax),
	}
	if o.Creds != "" {
		options = append(options, nats.UserCredentials(o.Creds))
	}
	if o.NKey != "" {
		nkey, err := nats.NkeyOptionFromSeed(o.NKey)
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrKeyFile, o.NKey, err)
		}
		options = append(options, nkey)
	}
	switch {
	case o.User != "" && o.Password != "":
		options = append(options, nats.UserInfo(o.User, o.Password))
	case o.User != "":
		options = append(options, nats.Token(o.User))
	}
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return nil, errors.New("bus: a TLS certificate and its key go together")
	}
	if o.TLSCert != "" {
		options = append(options, nats.ClientCert(o.TLSCert, o.TLSKey))
	}
	if o.TLSCA != "" {
		options = append(options, nats.RootCAs(o.TLSCA))
	}
	return append(options, PrivateInbox(o.InboxPrefix), o.serverOption()), nil
}

// serverOption sets the URLs, which take precedence over the URL of a context, if there is one.
func (o Options) serverOption() nats.Option {
	return func(n *nats.Options) error {
		given := o.Servers
		if given == "" && n.Url == "" && strings.Join(n.Servers, "") == "" {
			given = nats.DefaultURL
		}
		if given != "" {
			n.Url, n.Servers = "", nil
			for s := range strings.SplitSeq(given, ",") {
				n.Servers = append(n.Servers, strings.TrimSpace(s))
			}
		}
		return nil
	}
}

// ownerURL is a placeholder for the address of a server that is reached through its socket.
const ownerURL = "nats://" + "127.0.0.1"

// Connect connects, and reconnects for ever.
func Connect(o Options) (*nats.Conn, error) {
	if o.Owner != "" {
		o.Servers, o.Context = "", ""
	}
	options, err := o.natsOptions()
	if err != nil {
		return nil, err
	}
	options = append(options, o.Extra...)
	var nc *nats.Conn
	if o.Owner != "" {
		nc, err = nats.Connect(ownerURL, append(options, nats.SetCustomDialer(statedir.OwnerDialer{Dir: o.Owner}))...)
	} else if o.Context != "" {
		nc, _, err = natscontext.Connect(o.Context, options...)
	} else {
		nc, err = nats.Connect("", options...)
	}
	if err != nil {
		return nil, o.wrapConnectError(err)
	}
	return nc, nil
}

func (o Options) wrapConnectError(err error) error {
	where := redactPasswords(o.Servers)
	switch {
	case o.Owner != "":
		where = o.Owner
	case o.Servers == "" && o.Context != "":
		where = "context " + o.Context
	case o.Servers == "":
		where = nats.DefaultURL
	}
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return fmt.Errorf("%w at %s: %w", ErrCredentials, where, err)
	case errors.Is(err, statedir.ErrNodeFile), errors.Is(err, statedir.ErrNoServer):
		return err // from the socket; it names the address
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), isNetworkError(err):
		return fmt.Errorf("%w at %s: %w", statedir.ErrNoServer, where, err)
	case strings.Contains(err.Error(), "unknown context"), errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(where, "context "):
		return fmt.Errorf("%w: %w", ErrContext, err)
	}
	return fmt.Errorf("bus: connect to %s: %w", where, err)
}

func isNetworkError(err error) bool {
	var network interface{ Timeout() bool }
	return errors.As(err, &network)
}

// hostAndPort matches an address that NATS accepts without a scheme.
var hostAndPort = lazyregexp.New(`^[A-Za-z0-9.-]+:[0-9]{1,5}$`)

// redactPasswords removes passwords from URLs.
func redactPasswords(servers string) string {
	var out []string
	for s := range strings.SplitSeq(servers, ",") {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil {
			if u.User != nil {
				u.User = url.User("…")
			}
			s = u.String()
		} else if s = strings.TrimSpace(s); !hostAndPort.MatchString(s) {
			s = "(not a URL)"
		}
		out = append(out, s)
	}
	return strings.Join(out, ",")
}

// JoinOwner connects to the owner of a state directory by its node.json and its socket.
// ErrNoServer or ErrCredentials: there is no owner, or the file is from a process that died.
// ErrNodeFile: no process of this user wrote the file.
func JoinOwner(dir string, extra ...nats.Option) (*nats.Conn, statedir.NodeFile, error) {
	n, err := statedir.ReadNodeFile(dir)
	if err != nil {
		return nil, n, err
	}
	nc, err := Connect(Options{
		Owner: dir, User: n.User, Password: n.Password, InboxPrefix: InboxPrefix(RoleClient), Extra: extra,
	})
	return nc, n, err
}

// CheckJetStream reports ErrNoJetStream if the connection's account has none.
func CheckJetStream(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("bus: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	_, err = js.AccountInfo(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders), errors.Is(nc.LastError(), nats.ErrPermissionViolation):
		return fmt.Errorf("%w: %w", ErrNoJetStream, err)
	case errors.Is(err, context.DeadlineExceeded), IsUnavailable(err): // a server without JetStream says so
		return fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	return fmt.Errorf("bus: %w", err)
}
