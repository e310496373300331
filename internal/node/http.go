package node

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aserver"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/mcpserver"
)

// HTTPConfig is how a node serves HTTP (docs/http.md).
type HTTPConfig struct {
	// Address to listen on, HOST:PORT. Default: httpapi.DefaultAddress, or a free port if it is taken.
	Address string
	// Token that each request must present. Default: that of the state directory, which a node with a
	// server of its own makes; on a shared server it must be given.
	Token string
	// Owners have tokens of their own, by their names.
	Owners []httpapi.Owner
	// Hosts are accepted names of the node in addition to its addresses and localhost.
	Hosts []string
	// OpenProbes lets anyone ask whether the node lives and is ready.
	OpenProbes bool
	// MCPAnswers lets clients of the MCP server answer questions: models use them.
	MCPAnswers bool
}

// ErrHTTPToken says that a node on a shared server has no token for its HTTP server.
var ErrHTTPToken = errors.New("node: HTTP on a server that nodes share needs a token: TROUPE_HTTP_TOKEN or --http-token-file")

// streamAhead is how many live events wait for a stream that is being written. A stream that falls
// behind reads the logs instead.
const streamAhead = 4096

// httpToken returns the token of the HTTP server; fresh: it must be written to the state directory.
func (c Config) httpToken() (token string, fresh bool, err error) {
	switch {
	case c.HTTP == nil:
		return "", false, nil
	case c.HTTP.Token != "":
		return c.HTTP.Token, false, httpapi.CheckToken(c.HTTP.Token)
	case c.Bus.NamesServer():
		return "", false, ErrHTTPToken
	}
	token, err = statedir.ReadHTTPToken(statedir.StateDir(c.StateDir))
	if err != nil || token != "" {
		return token, false, err
	}
	return statedir.NewHTTPToken(), true, nil
}

// serveHTTP begins to serve HTTP, if the node is to.
func (n *Node) serveHTTP() error {
	c := n.cfg.HTTP
	if c == nil {
		return nil
	}
	if n.httpTokenFresh {
		if err := statedir.WriteHTTPToken(statedir.StateDir(n.cfg.StateDir), n.httpToken); err != nil {
			return err
		}
	}
	requests, err := n.newClient(nats.SyncQueueLen(streamAhead), closedHandler(n))
	if err != nil {
		return err
	}
	l, err := httpapi.Listen(c.Address)
	if err != nil {
		return err
	}
	owners := slices.Clone(c.Owners)
	for i := range owners {
		own, err := n.newClient(nats.SyncQueueLen(streamAhead), closedHandler(n)) // answers and events of an owner do not delay those of others
		if err == nil {
			owners[i].Client, err = client.ActAs(own, owners[i].Name)
		}
		if err != nil {
			return errors.Join(err, l.Close())
		}
		owners[i].MCP, owners[i].A2A = protocolHandlers(n, owners[i].Client)
	}
	tools, tasks := protocolHandlers(n, requests)
	s, err := httpapi.Serve(l, httpapi.Config{Client: requests, Token: n.httpToken, Hosts: c.Hosts, OpenProbes: c.OpenProbes, Owners: owners,
		Agents: n.agents.listAgents, Alive: n.closed.check, Ready: n.checkReady, Metrics: n.watch.metrics, MCP: tools, A2A: tasks, Logger: n.cfg.Logger})
	if err != nil {
		return err
	}
	n.http.Store(s)
	if n.embedded != nil {
		return n.embedded.AnnounceHTTP(s.URL())
	}
	return nil
}

// protocolHandlers serve MCP and A2A with the rights of a client.
func protocolHandlers(n *Node, c *client.Client) (tools, tasks http.Handler) {
	tools = mcpserver.NewHandler(mcpserver.Config{Client: c, Version: control.Version(), Agents: n.agents.listToolAgents, Answers: n.cfg.HTTP.MCPAnswers, Observe: n.watch.metrics.ObserveMCPRequest, Spans: n.spans})
	tasks = a2aserver.NewHandler(a2aserver.Config{Client: c, Version: control.Version(), Agents: n.agents.listA2AAgents, Spans: n.spans})
	return tools, tasks
}

// HTTPURL is the address of the HTTP server; "" without one.
func (n *Node) HTTPURL() string {
	if s := n.http.Load(); s != nil {
		return s.URL()
	}
	return ""
}

// errNotReady says why a node cannot take work.
var errNotReady = errors.New("node: not ready")

// checkReady returns why the node cannot take work now: it is connected, its logs can be written, and
// it owns logs or takes part in sharing them.
func (n *Node) checkReady() error {
	for _, nc := range []*nats.Conn{n.logConn, n.leaseConn, n.serviceConn} {
		if !nc.IsConnected() {
			return fmt.Errorf("%w: the connection to the NATS server is %s", errNotReady, strings.ToLower(nc.Status().String()))
		}
	}
	if i := n.logHealth.clientInfo(); i != nil && !i.Low {
		return fmt.Errorf("%w: the logs cannot be written: %s: %s", errNotReady, i.Why, i.Remedy)
	} else if i != nil {
		return fmt.Errorf("%w: the disk has little room, and new runs are refused: %s", errNotReady, i.Remedy)
	}
	return n.logOwner.CheckOwnership()
}
