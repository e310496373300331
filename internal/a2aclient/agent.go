// Package a2aclient calls agents of other programs by the Agent2Agent protocol (A2A), in its versions 1.0 and 0.3, over
// its binding for JSON-RPC. The settings of the operator say where an agent is. Neither a model, nor the agent's card,
// nor a redirect leads a request to another server.
package a2aclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/toolname"
)

// NamePrefix begins the name of an agent of this protocol in an agent file: a2a/NAME.
const NamePrefix = toolname.A2APrefix

// cardPath is where a server has the card of its agent.
const cardPath = "/.well-known/agent-card.json"

// Agent is an agent of another program, as the operator's settings name it.
type Agent struct {
	Name string // without NamePrefix
	// URL is that of its card if it ends with .json, or else that of its server, below which the card is at the
	// well-known path.
	URL string
	// Endpoint is where it is called. Default: where its card says, if that is on the server of URL.
	Endpoint string
	// TokenEnv is the variable of the node that has its credential. Default: it needs none.
	TokenEnv string
	// TokenHeader is the header that carries the credential as it is. Default: Authorization, with the scheme Bearer.
	TokenHeader string
}

var (
	nameForm     = lazyregexp.New(`^[A-Za-z0-9_-]{1,63}$`)
	variableForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerForm   = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)
)

// ownHeaders are the headers of a request that the protocol and HTTP define.
var ownHeaders = lazyregexp.New(`(?i)^(host|content-.*|accept.*|a2a-.*|connection|transfer-encoding|te|upgrade|` +
	`trailer|expect|cookie|user-agent)$`)

// IsName reports whether a name in an agent file is that of an agent of this protocol, a2a/NAME.
func IsName(name string) bool {
	rest, ok := strings.CutPrefix(name, NamePrefix)
	return ok && nameForm.MatchString(rest)
}

// Validate returns an error if an agent is invalid. The error names the key and the remedy.
func (a Agent) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("a2a_agents.%.80s: %s", a.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case !nameForm.MatchString(a.Name):
		return fail("a name has letters, digits, _ and -, at most 63")
	case a.URL == "":
		return fail("it has no url; write that of its server or of its card, such as https://agents.example.com")
	case a.TokenEnv != "" && !variableForm.MatchString(a.TokenEnv):
		return fail("token_env is the name of a variable, such as REVIEWER_TOKEN, and not the token itself")
	case a.TokenHeader != "" && a.TokenEnv == "":
		return fail("token_header needs token_env, the variable that has the token")
	case a.TokenHeader != "" && (!headerForm.MatchString(a.TokenHeader) || ownHeaders.MatchString(a.TokenHeader)):
		return fail("token_header %.80q is not a header that can carry a token; write one such as X-API-Key", a.TokenHeader)
	}
	// in order: of two that are wrong, the first one is named
	for _, at := range [][2]string{{"url", a.URL}, {"endpoint", a.Endpoint}} {
		key, text := at[0], at[1]
		if text == "" {
			continue
		}
		u, err := parseURL(text)
		switch {
		case err != nil:
			return fail("%s: %v", key, err)
		case a.TokenEnv != "" && u.Scheme == "http" && !isLoopback(u.Hostname()):
			return fail("%s: the token would travel unencrypted; write https://", key)
		}
	}
	return nil
}

// parseURL reads the address of a server.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it is not an http or https URL; write https://HOST/PATH")
	case u.User != nil:
		return nil, errors.New("a password has no place in a URL; write token_env")
	}
	u.Fragment = ""
	return u, nil
}

// isLoopback reports whether a host is this machine, by its address or as localhost.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// cardURL is where the card of the agent is.
func (a Agent) cardURL() (*url.URL, error) {
	u, err := parseURL(a.URL)
	if err != nil {
		return nil, fmt.Errorf("a2a_agents.%s: url: %w", a.Name, err)
	}
	if !strings.HasSuffix(u.Path, ".json") {
		u = u.JoinPath(cardPath)
	}
	return u, nil
}

// header returns the header with the credential, which is in the environment of the node; "" if the agent needs none.
func (a Agent) header(env func(string) string) (name, value string, err error) {
	if a.TokenEnv == "" {
		return "", "", nil
	}
	token := strings.TrimSpace(env(a.TokenEnv))
	switch {
	case token == "":
		return "", "", fmt.Errorf("the variable %s of a2a_agents.%s is not set on this node", a.TokenEnv, a.Name)
	case strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", "", fmt.Errorf("the variable %s of a2a_agents.%s has characters that no header may have",
			a.TokenEnv, a.Name)
	case a.TokenHeader != "":
		return a.TokenHeader, token, nil
	}
	return "Authorization", "Bearer " + token, nil
}

// origin is the server of an address: what must be equal for a request with a credential to go there.
func origin(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
