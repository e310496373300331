package nodes

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/term"
)

const httpTokenVariable = "TROUPE_HTTP_TOKEN"

// httpAddresses are the addresses at which the nodes serve HTTP: the given one, and for each further
// node the next port; port 0 is a free one for each.
func httpAddresses(given string, nodes int) ([]string, error) {
	host, port, err := net.SplitHostPort(given)
	first, convErr := strconv.ParseUint(port, 10, 16)
	if err != nil || convErr != nil || first+uint64(nodes) > 1<<16 {
		return nil, exit.UsageError("for example --http 127.0.0.1:8420",
			"--http is HOST:PORT of the first node, not %q", given)
	}
	list := make([]string, nodes)
	for i := range list {
		p := first
		if first > 0 {
			p += uint64(i)
		}
		list[i] = net.JoinHostPort(host, strconv.FormatUint(p, 10))
	}
	return list, nil
}

// httpEnvironment is how the nodes get the token of their HTTP servers: that of the environment, or
// that of the state directory, which has one from then on.
func (cs *Commands) httpEnvironment() ([]string, error) {
	if token := cs.Console.Getenv(httpTokenVariable); token != "" {
		if err := httpapi.CheckToken(token); err != nil {
			return nil, exit.UsageError("make one with: openssl rand -hex 32", "%s: %w", httpTokenVariable, err)
		}
		return nil, nil // they inherit it
	}
	if cs.Sessions.Conn.NamesServer() {
		return nil, exit.UsageError("make one with: openssl rand -hex 32",
			"--http on the server of -s needs a token in %s", httpTokenVariable)
	}
	dir := statedir.StateDir(cs.Sessions.StateDir)
	token, err := statedir.ReadHTTPToken(dir)
	if err == nil && token == "" {
		token = statedir.NewHTTPToken()
		err = statedir.WriteHTTPToken(dir, token)
	}
	if err != nil {
		return nil, err
	}
	cs.Console.Say(term.CleanLine("the HTTP token of all nodes is in " + statedir.HTTPTokenPath(dir)))
	return []string{httpTokenVariable + "=" + token}, nil
}

// httpAddressBook holds the addresses of the nodes over HTTP. The one of the first node that lives is in node.json.
type httpAddressBook struct {
	announce func(url string) error
	byNode   map[string]string
	current  string
}

// set records the address of a node; "": the node has ended.
func (b *httpAddressBook) set(name, url string) error {
	if b.byNode == nil {
		b.byNode = map[string]string{}
	}
	b.byNode[name] = url
	first := ""
	for _, n := range slices.Sorted(maps.Keys(b.byNode)) {
		first = cmp.Or(first, b.byNode[n])
	}
	if first == b.current {
		return nil
	}
	b.current = first
	return b.announce(first)
}
