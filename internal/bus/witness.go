package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// A stream does not report whether its servers sync what they store: only a server itself
// does, to its system account or at its monitoring port.

// ServerFacts is what a server reports about itself.
type ServerFacts struct {
	Name    string
	Version string
	// JetStream says that the server stores streams, Synced that it syncs each write before it
	// acknowledges.
	JetStream, Synced bool
	// SyncEvery is how often the server syncs otherwise.
	SyncEvery time.Duration
}

// ServerWitness reports what servers say about themselves.
type ServerWitness interface {
	// ReportFacts asks the servers. wanted are the names of those that matter: it is no error if
	// others answer, or not all.
	ReportFacts(ctx context.Context, wanted []string) ([]ServerFacts, error)
	// FactsSource says how the facts were obtained.
	FactsSource() string
}

// serverVarz is the part of a server's /varz that troupe uses.
type serverVarz struct {
	Name      string `json:"server_name"`
	Version   string `json:"version"`
	JetStream struct {
		Config *struct {
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
	} `json:"jetstream"`
}

func (v serverVarz) serverFacts() ServerFacts {
	f := ServerFacts{Name: v.Name, Version: v.Version}
	if c := v.JetStream.Config; c != nil {
		f.JetStream, f.Synced, f.SyncEvery = true, c.SyncAlways, c.SyncInterval
	}
	return f
}

// ErrWitness says that no server answered that could report how servers store.
var ErrWitness = errors.New("bus: no server reported how it stores")

// MonitorURLs are the monitoring addresses of servers, as in http://10.0.0.1:8222.
type MonitorURLs []string

const (
	varzBytesMax   = 1 << 20
	witnessTimeout = 3 * time.Second
	witnessQuiet   = 500 * time.Millisecond // pause after the last answer while some are missing
)

// FactsSource implements Witness.
func (m MonitorURLs) FactsSource() string { return "at their monitoring ports" }

// ReportFacts implements Witness.
func (m MonitorURLs) ReportFacts(ctx context.Context, _ []string) ([]ServerFacts, error) {
	var list []ServerFacts
	var errs []error
	for _, address := range m {
		v, err := fetchVarz(ctx, address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, v.serverFacts())
	}
	return list, errors.Join(errs...)
}

func fetchVarz(ctx context.Context, address string) (v serverVarz, err error) {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	where, err := url.JoinPath(address, "varz")
	if err != nil {
		return v, fmt.Errorf("%w: %s: %w", ErrWitness, address, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return v, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := once.Do(r)
	if err != nil {
		return v, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, varzBytesMax))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return v, fmt.Errorf("%w: %s: %w", ErrWitness, where, err)
	}
	if answer.StatusCode != http.StatusOK {
		return v, fmt.Errorf("%w: %s answers %s", ErrWitness, where, answer.Status)
	}
	if err := json.Unmarshal(raw, &v); err != nil || v.Name == "" {
		return v, fmt.Errorf("%w: %s is not the monitoring port of a NATS server", ErrWitness, where)
	}
	return v, nil
}

// SystemAccount asks the servers over a connection of the system account.
type SystemAccount struct{ Conn *nats.Conn }

// systemVarz is a request that all servers of a cluster answer.
const systemVarz = "$SYS.REQ.SERVER.PING.VARZ"

// FactsSource implements Witness.
func (s SystemAccount) FactsSource() string { return "by the system account" }

// ReportFacts implements Witness.
func (s SystemAccount) ReportFacts(ctx context.Context, wanted []string) ([]ServerFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	inbox := s.Conn.NewInbox()
	sub, err := s.Conn.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it ends with the connection anyway
	if err := s.Conn.PublishRequest(systemVarz, inbox, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	missing := map[string]bool{}
	for _, name := range wanted {
		missing[name] = true
	}
	var list []ServerFacts
	for wait := ctx; len(missing) > 0; {
		m, err := sub.NextMsgWithContext(wait)
		if err != nil {
			break
		}
		var answer struct {
			Data serverVarz `json:"data"`
		}
		if json.Unmarshal(m.Data, &answer) != nil || answer.Data.Name == "" {
			continue // not from a server
		}
		list = append(list, answer.Data.serverFacts())
		delete(missing, answer.Data.Name)
		var quiet context.CancelFunc
		wait, quiet = context.WithTimeout(ctx, witnessQuiet)
		defer quiet()
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no server answers at %s: the credential is not of the system account", ErrWitness, systemVarz)
	}
	return list, nil
}

// NodeFileWitness reports what the owner of a state directory has written in its node.json, which only
// this user can write.
type NodeFileWitness struct{ Dir string }

// FactsSource implements Witness.
func (o NodeFileWitness) FactsSource() string { return "in the node.json of its owner" }

// ReportFacts implements Witness.
func (o NodeFileWitness) ReportFacts(_ context.Context, wanted []string) ([]ServerFacts, error) {
	file, err := statedir.ReadNodeFile(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	var list []ServerFacts
	for _, name := range wanted { // there is one server, with one name
		list = append(list, ServerFacts{Name: name, Version: file.Version, JetStream: true, Synced: file.Durability == statedir.DurabilitySync, SyncEvery: statedir.LazySync})
	}
	return list, nil
}

// joinNames joins a list for users.
func joinNames(names []string) string { return strings.Join(names, ", ") }
