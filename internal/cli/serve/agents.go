package serve

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/node"
)

// agentFlags are the flags about agents that other programs prompt.
type agentFlags struct {
	export bool
	owner  string
}

func (a *agentFlags) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.export, "agents-on-bus", false, agentprotocol.Usage)
	f.StringVar(&a.owner, "agents-owner", "", "with --agents-on-bus: the owner in the subjects of the agents, the same on all nodes of a cluster (default the name of the user)")
}

// config returns how the node exports agents; nil: it does not.
func (a *agentFlags) config() (*node.AgentsOnBus, error) {
	switch {
	case a.owner != "" && !a.export:
		return nil, fmt.Errorf("%w: --agents-owner needs --agents-on-bus", errConfiguration)
	case !a.export:
		return nil, nil
	case a.owner == "":
		return &node.AgentsOnBus{}, nil
	}
	if err := names.CheckToken(a.owner); err != nil {
		return nil, fmt.Errorf("%w: --agents-owner %q: write up to %d of a-z, 0-9, - and _", errConfiguration, a.owner, names.TokenBytesMax)
	}
	return &node.AgentsOnBus{Owner: a.owner}, nil
}

// agentsLine says at which subjects the agents take prompts, and a command that works as it is pasted; "" if none is
// exported. nodeFile has the credential for the embedded server at url; "": the server is another one.
func agentsLine(subjects []string, url, nodeFile string) string {
	if len(subjects) == 0 {
		return ""
	}
	credential, inbox := "", ""
	if nodeFile != "" {
		credential = "NATS_URL=" + url + ` NATS_USER=client NATS_PASSWORD="$(jq -r .password ` + shellWord(nodeFile) + `)" `
		inbox = " --inbox-prefix _INBOX_client"
	}
	return "agents at " + strings.Join(subjects, " ") + "; try: " + credential + "nats" + inbox + " req --wait-for-empty --reply-timeout 60s " + subjects[0] + " 'Say hello'"
}
