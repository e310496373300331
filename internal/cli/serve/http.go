package serve

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/safefile"
)

const (
	// httpOff is the value of --http that opens no HTTP server.
	httpOff = "off"
	// tokenVariable is the environment variable with the token of the HTTP server.
	tokenVariable = "TROUPE_HTTP_TOKEN"
	// tokenFileMax is the most bytes of --http-token-file that are read.
	tokenFileMax = 4 << 10
	// ownersFileMax is the most bytes of --http-owners-file that are read.
	ownersFileMax = 1 << 20
)

// httpFlags are the flags about the HTTP server.
type httpFlags struct {
	address    string
	tokenFile  string
	ownersFile string
	hosts      []string
	openProbes bool
	mcpAnswers bool
}

func (h *httpFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&h.address, "http", "", "HOST:PORT of the HTTP API, or off (default "+httpapi.DefaultAddress+" or else a free port; off on the server of -s)")
	f.StringVar(&h.tokenFile, "http-token-file", "", "file with the token that every HTTP request must present (or "+tokenVariable+"; default: "+statedir.HTTPTokenName+" in the state directory)")
	f.StringVar(&h.ownersFile, "http-owners-file", "", "file with a line NAME TOKEN for each owner who may see and change only runs of their own; --http-token-file is the operator's")
	f.StringSliceVar(&h.hosts, "http-host", nil, "additional host name for the HTTP API; may be repeated")
	f.BoolVar(&h.openProbes, "http-open-probes", false, "serve /healthz and /readyz without a token")
	f.BoolVar(&h.mcpAnswers, "mcp-answers", false,
		"let clients of /mcp answer questions: the models that use them can then approve calls")
}

const portMax = 65535

// config returns how the node serves HTTP; nil: it does not. shared: the server is one that nodes share.
func (h *httpFlags) config(shared bool) (*node.HTTPConfig, error) {
	given := h.tokenFile != "" || h.ownersFile != "" || len(h.hosts) > 0 || h.openProbes || h.mcpAnswers
	if h.address == httpOff || h.address == "" && shared {
		if given {
			return nil, fmt.Errorf("%w: --http-token-file, --http-owners-file, --http-host, --http-open-probes and --mcp-answers need --http HOST:PORT", errConfiguration)
		}
		return nil, nil
	}
	if h.address != "" {
		_, port, err := net.SplitHostPort(h.address)
		if err != nil {
			return nil, fmt.Errorf("%w: --http is HOST:PORT or off, not %q", errConfiguration, h.address)
		}
		if n, err := strconv.Atoi(port); err == nil && (n < 0 || n > portMax) {
			return nil, fmt.Errorf("%w: --http %s: %d is not a port, which is at most %d", errConfiguration, h.address, n, portMax)
		}
	}
	c := &node.HTTPConfig{Address: h.address, Hosts: h.hosts, OpenProbes: h.openProbes, MCPAnswers: h.mcpAnswers, Token: os.Getenv(tokenVariable)}
	if h.tokenFile != "" {
		raw, err := safefile.Read(h.tokenFile, tokenFileMax)
		if err != nil {
			return nil, fmt.Errorf("%w: --http-token-file: %w", errConfiguration, err)
		}
		c.Token = strings.TrimSpace(string(raw))
		if c.Token == "" {
			return nil, fmt.Errorf("%w: --http-token-file: %s is empty", errConfiguration, h.tokenFile)
		}
	}
	if err := h.readOwners(c); err != nil {
		return nil, err
	}
	if c.Token == "" && shared {
		return nil, fmt.Errorf("%w: %w", errConfiguration, node.ErrHTTPToken)
	}
	if c.Token != "" {
		if err := httpapi.CheckToken(c.Token); err != nil {
			return nil, fmt.Errorf("%w: %w", errConfiguration, err)
		}
	}
	return c, nil
}

// readOwners reads the tokens of owners.
func (h *httpFlags) readOwners(c *node.HTTPConfig) error {
	if h.ownersFile == "" {
		return nil
	}
	raw, err := safefile.Read(h.ownersFile, ownersFileMax)
	if err == nil {
		c.Owners, err = httpapi.ParseOwners(string(raw))
	}
	if err != nil {
		return fmt.Errorf("%w: --http-owners-file: %w", errConfiguration, err)
	}
	return nil
}

// hint is a command line that asks the HTTP server at url. It names where the token is, not the token, and curl reads it
// from its stdin: other accounts can see the arguments of a program.
func (h *httpFlags) hint(url, stateDir string) string {
	dir := statedir.StateDir(stateDir)
	token := `$(cat ` + shellWord(cmp.Or(h.tokenFile, statedir.HTTPTokenPath(dir))) + `)`
	if given := os.Getenv(tokenVariable); h.tokenFile == "" && given != "" {
		// troupe up gives its nodes the token of the state directory in their environment, which no terminal has
		if stored, err := statedir.ReadHTTPToken(dir); err != nil || stored != given {
			token = "$" + tokenVariable
		}
	}
	return `echo "Authorization: Bearer ` + token + `" | curl -H @- ` + url + "/api/v1/runs"
}

// shellWord quotes a path within double quotes and a command substitution, if it needs it.
func shellWord(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+@%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
