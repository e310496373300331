package bus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/natscontext"
)

const (
	// DefaultTimeout ends an attempt to connect.
	DefaultTimeout = 5 * time.Second

	// PingEvery is how often a server is asked whether it is there. One that is
	// silent for three of these is left for another one, within the TTL of leases:
	// a network that drops packets tells nobody.
	PingEvery = 5 * time.Second
	pingsMax  = 2

	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond
	apiTimeout      = 5 * time.Second
)

var (
	// ErrNoServer: nothing answers at the address.
	ErrNoServer = errors.New("bus: no NATS server")
	// ErrCredentials: the server answers, but does not take these credentials.
	ErrCredentials = errors.New("bus: the NATS server refused the credentials")
	// ErrNoJetStream: the server answers, but has no JetStream for this account.
	ErrNoJetStream = errors.New("bus: JetStream is not enabled for this account")
	// ErrNoLeader: the server has JetStream, and nobody leads it or one of its streams.
	ErrNoLeader = errors.New("bus: JetStream has no leader")
)

// Options say which server and as whom; they are the flags of the nats CLI.
// What is set here goes before what a context says.
type Options struct {
	// Servers is a comma-separated list of URLs. Default: the context's, or
	// else nats://127.0.0.1:4222.
	Servers string
	// Context is the name of a nats CLI context, or an absolute path to one.
	Context string
	// Owner is a state directory: the server is the one of the process that owns it.
	// It is reached and proven by the socket there, and Servers and Context do not count.
	Owner string
	// Creds and NKey are paths of files.
	Creds, NKey string
	// User without Password is a token, as the nats CLI has it.
	User, Password, Token string
	// TLSCert, TLSKey and TLSCA are paths of PEM files.
	TLSCert, TLSKey, TLSCA string
	// InboxPrefix is where answers come. Default: "_INBOX". Each connection has inboxes
	// of its own below it, which nobody can guess.
	InboxPrefix string
	// Name is how the server lists the connection. Default "troupe".
	Name string
	// Timeout ends the attempt. Default DefaultTimeout.
	Timeout time.Duration
	// Extra options of the client library, applied last.
	Extra []nats.Option
}

// OwnerVariable is the environment variable of Options.Owner.
const OwnerVariable = "TROUPE_OWNER"

// FromEnv returns o with what is not set taken from the environment, under the
// names of the nats CLI. getenv is os.Getenv, or a test's.
func (o Options) FromEnv(getenv func(string) string) Options {
	for name, field := range map[string]*string{
		"NATS_URL": &o.Servers, "NATS_CONTEXT": &o.Context,
		"NATS_CREDS": &o.Creds, "NATS_NKEY": &o.NKey,
		"NATS_USER": &o.User, "NATS_PASSWORD": &o.Password, "NATS_TOKEN": &o.Token,
		"NATS_CERT": &o.TLSCert, "NATS_KEY": &o.TLSKey, "NATS_CA": &o.TLSCA,
		"NATS_INBOX_PREFIX": &o.InboxPrefix, OwnerVariable: &o.Owner,
	} {
		if *field == "" {
			*field = getenv(name)
		}
	}
	return o
}

// Given reports whether o names a server. If not, a node of the state directory
// is looked for, or one is started.
func (o Options) Given() bool { return o.Servers != "" || o.Context != "" || o.Owner != "" }

// Anonymous reports whether o names nothing that says who connects. A context
// may, and so may a URL.
func (o Options) Anonymous() bool {
	return o.Context == "" && o.Creds == "" && o.NKey == "" && o.User == "" && o.Token == "" && o.TLSCert == "" && !strings.Contains(o.Servers, "@")
}

func (o Options) natsOptions() ([]nats.Option, error) {
	if o.Name == "" {
		o.Name = DefaultPrefix
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
			return nil, fmt.Errorf("bus: nkey %s: %w", o.NKey, err)
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
	return append(options, privateInbox(o.InboxPrefix), o.servers()), nil
}

// servers goes before the URL of a context, if there is one.
func (o Options) servers() nats.Option {
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

// ownerURL stands for the address of a server that is reached by its socket.
const ownerURL = "nats://" + loopback

// Connect connects and stays so: it reconnects for ever.
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
		nc, err = nats.Connect(ownerURL, append(options, nats.SetCustomDialer(ownerDialer{o.Owner}))...)
	} else if o.Context != "" {
		nc, _, err = natscontext.Connect(o.Context, options...)
	} else {
		nc, err = nats.Connect("", options...)
	}
	if err != nil {
		return nil, o.explain(err)
	}
	return nc, nil
}

func (o Options) explain(err error) error {
	where := redact(o.Servers)
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
	case errors.Is(err, ErrNodeFile), errors.Is(err, ErrNoServer):
		return err // of the socket; it says where
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), isNetwork(err):
		return fmt.Errorf("%w at %s: %w", ErrNoServer, where, err)
	}
	return fmt.Errorf("bus: connect to %s: %w", where, err)
}

func isNetwork(err error) bool {
	var network interface{ Timeout() bool }
	return errors.As(err, &network)
}

// redact removes passwords from URLs.
func redact(servers string) string {
	var out []string
	for s := range strings.SplitSeq(servers, ",") {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil {
			if u.User != nil {
				u.User = url.User("…")
			}
			s = u.String()
		} else {
			s = "(not a URL)"
		}
		out = append(out, s)
	}
	return strings.Join(out, ",")
}

// Join connects to the owner of a state directory by its node.json and its socket.
// ErrNoServer or ErrCredentials: there is none, or the file is from a process that
// died. ErrNodeFile: it is not from a process of this user.
func Join(dir string, extra ...nats.Option) (*nats.Conn, NodeFile, error) {
	n, err := ReadNodeFile(dir)
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
	case errors.Is(err, context.DeadlineExceeded), Unavailable(err): // a server without JetStream says so
		return fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	return fmt.Errorf("bus: %w", err)
}
