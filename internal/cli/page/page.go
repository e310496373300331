// Package page holds the command that opens the page of a node.
package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	ticketTimeout  = 10 * time.Second
	ticketBytesMax = 64 << 10
	tokenVariable  = "TROUPE_HTTP_TOKEN"
)

var errTicket = errors.New("page: the node gave no address")

// Commands are about the page.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// UI makes the command ui.
func (cs *Commands) UI() *cobra.Command {
	var named string
	c := &cobra.Command{
		Use: "ui", Args: command.NoArguments,
		Short: "Print an address that opens the page of a node in a browser",
		Long: `Print an address that opens the page of a running node in a browser: runs, agents,
transcripts, budgets, and the questions that wait for you. The address opens the page once,
within five minutes; the page then stays open for twelve hours (docs/ui.md).

The token is that of TROUPE_HTTP_TOKEN, or of the state directory.`,
		Example:     "  troupe-node & troupe ui\n  troupe ui --url https://troupe.example.com",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, _ []string) error {
			if named != "" { // of a node that this machine may know nothing of
				at, err := checkURL(named)
				if err != nil {
					return err
				}
				return cs.printAddress(c.Context(), at)
			}
			return explainNoNode(cs.Sessions.Visit(session.ToJoin, func(ctx context.Context, s *session.Session) error {
				at, err := nodeAddress(ctx, s)
				if err != nil {
					return err
				}
				return cs.printAddress(ctx, at)
			}))
		},
	}
	c.Flags().StringVar(&named, "url", "",
		"address of the node, if a proxy has another one (default: that of the node that answers)")
	return c
}

// explainNoNode says what of a run can be seen without a node.
func explainNoNode(err error) error {
	var f *exit.Failure
	if !errors.As(err, &f) || f.Code != exit.NoNode || !errors.Is(err, session.ErrNoNode) {
		return err
	}
	return &exit.Failure{Code: exit.NoNode, Err: f.Err, Hint: "start troupe-node; without one `troupe export RUN --html` writes the page of one run to a file"}
}

// printAddress asks the node at an address for a ticket, and prints the address that opens its page.
func (cs *Commands) printAddress(ctx context.Context, at string) error {
	token, err := cs.token()
	if err != nil {
		return err
	}
	ticket, err := askTicket(ctx, at, token)
	if err != nil {
		return &exit.Failure{Code: exit.NoNode, Err: err, Hint: "the token must be that of the node: TROUPE_HTTP_TOKEN, or the state directory of --store-dir"}
	}
	address := at + "/#ticket=" + ticket.Ticket
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(map[string]string{"url": address, "expires": ticket.Expires})
	}
	return cs.Console.Write([]byte(term.CleanLine(address) + "\n"))
}

// checkURL returns the address of a node that the user names. The token goes there, so the address must be one of this
// machine, or the connection must be encrypted.
func checkURL(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", exit.UsageError("for example --url http://127.0.0.1:8420", "--url is the address of a node, not %q", given)
	}
	if u.Scheme == "http" && u.Hostname() == "localhost" { // any account may listen at ::1, which is tried first
		u.Host = net.JoinHostPort("127.0.0.1", cmp.Or(u.Port(), "80"))
	}
	if u.Scheme == "http" && !isLoopback(u) {
		return "", exit.UsageError("use https, or a tunnel to this machine",
			"--url %s would send the token of the node in the clear", given)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

func isLoopback(u *url.URL) bool {
	host, err := netip.ParseAddr(u.Hostname())
	return err == nil && host.IsLoopback()
}

// nodeAddress is where the node serves HTTP. The token goes there, so the address must be one of this machine: what a
// node of another one announces is not believed.
func nodeAddress(ctx context.Context, s *session.Session) (string, error) {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return "", err
	}
	here, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("page: the name of this machine: %w", err)
	}
	elsewhere := ""
	for _, n := range nodes {
		if n.HTTP == "" {
			continue
		}
		if at := addressHere(n, here); at != "" {
			return at, nil
		}
		elsewhere = cmp.Or(elsewhere, fmt.Sprintf("node %s serves HTTP at %s of %s, and the token would go there in the clear", n.Name, n.HTTP, n.Host))
	}
	if elsewhere != "" {
		return "", &exit.Failure{Code: exit.NoNode, Err: errors.New(term.CleanLine(elsewhere)), Hint: "name an address with --url: https, or a tunnel to this machine"}
	}
	return "", &exit.Failure{Code: exit.NoNode, Err: errors.New("the node serves no HTTP"), Hint: "start it with --http 127.0.0.1:8420, or name the address of another one with --url"}
}

// addressHere is the address that a node of this machine announces, as programs of this machine reach it; "" for any
// other. A node that listens at all addresses announces none of them.
func addressHere(n client.NodeInfo, here string) string {
	u, err := url.Parse(n.HTTP)
	if err != nil || n.Host != here {
		return ""
	}
	if host, err := netip.ParseAddr(u.Hostname()); err == nil && host.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	if !isLoopback(u) && !isOwnAddress(u) {
		return ""
	}
	return u.String()
}

// isOwnAddress reports whether an address is one of an interface of this machine: what is sent there does not leave it.
func isOwnAddress(u *url.URL) bool {
	own, err := net.InterfaceAddrs()
	host := net.ParseIP(u.Hostname())
	return err == nil && host != nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(host)
	})
}

func (cs *Commands) token() (string, error) {
	token := cs.Console.Getenv(tokenVariable)
	if token != "" {
		return token, httpapi.CheckToken(token)
	}
	dir := statedir.StateDir(cs.Sessions.StateDir)
	token, err := statedir.ReadHTTPToken(dir)
	if err == nil && token == "" {
		return "", exit.UsageError("set "+tokenVariable+" to the token of the node",
			"there is no token in %s", statedir.HTTPTokenPath(dir))
	}
	return token, err
}

// ticketClient asks the address itself: not another one to which it is sent on, and no proxy of the environment, which
// would read the token where the connection is not encrypted.
func ticketClient(at *url.URL) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.DisableKeepAlives = true
	if at.Scheme == "http" {
		transport.Proxy = nil
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// askTicket asks a node for a ticket.
func askTicket(ctx context.Context, at, token string) (t httpapi.Ticket, err error) {
	ctx, cancel := context.WithTimeout(ctx, ticketTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/api/v1/tickets", bytes.NewReader(nil))
	if err != nil {
		return t, fmt.Errorf("%w: %w", errTicket, err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	reply, err := ticketClient(r.URL).Do(r)
	if err != nil {
		return t, fmt.Errorf("%w: %w", errTicket, err)
	}
	defer reply.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(reply.Body, ticketBytesMax))
	if err != nil {
		return t, fmt.Errorf("%w: %w", errTicket, err)
	}
	if reply.StatusCode != http.StatusCreated {
		var p httpapi.Problem
		_ = json.Unmarshal(raw, &p) // a proxy may answer with something else: then the status says enough
		return t, fmt.Errorf("%w: %s %s", errTicket, reply.Status, term.CleanLine(p.Error))
	}
	if err := json.Unmarshal(raw, &t); err != nil || t.Ticket == "" {
		return t, fmt.Errorf("%w: its answer is not a ticket", errTicket)
	}
	return t, nil
}
