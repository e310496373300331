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
	export  bool
	owner   string
	senders string
}

func (a *agentFlags) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.export, "agents-on-bus", false, agentprotocol.Usage)
	f.StringVar(&a.owner, "agents-owner", "",
		"with --agents-on-bus: the owner in the subjects of the agents, the same on all nodes of a cluster (default the "+
			"name of the user)")
	f.StringVar(&a.senders, "agents-senders", "",
		"with --agents-on-bus: verify who signs prompts, and take prompts of any sender or only of signed ones: any or "+
			"signed (default: senders are not looked at)")
}

// config returns how the node exports agents; nil: it does not.
func (a *agentFlags) config() (*node.AgentsOnBus, error) {
	trust := agentprotocol.SenderTrust(a.senders)
	switch {
	case a.owner+a.senders != "" && !a.export:
		return nil, fmt.Errorf("%w: --agents-owner and --agents-senders need --agents-on-bus", errConfiguration)
	case !a.export:
		return nil, nil
	case trust != "" && trust != agentprotocol.AnySender && trust != agentprotocol.SignedSender:
		return nil, fmt.Errorf("%w: --agents-senders %.80q: write any or signed", errConfiguration, a.senders)
	case a.owner == "":
		return &node.AgentsOnBus{Senders: trust}, nil
	}
	if err := names.CheckToken(a.owner); err != nil {
		return nil, fmt.Errorf("%w: --agents-owner %q: write up to %d of a-z, 0-9, - and _", errConfiguration, a.owner, names.TokenBytesMax)
	}
	return &node.AgentsOnBus{Owner: a.owner, Senders: trust}, nil
}

// agentsLine names the subjects at which the agents take prompts, with a command to paste; "" if no agent is
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
