package serve

import (
	"errors"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// explainError gives an error its code and a remedy.
func explainError(err error) (code int, hint string) {
	switch {
	case errors.Is(err, statedir.ErrOwned):
		return exit.NoNode, "another node or a troupe run has the state directory; use another --store-dir"
	case errors.Is(err, statedir.ErrLogStore):
		return exit.Usage, "a directory remembers its log store, so --log-store is for a new one; see docs/profiles.md"
	case errors.Is(err, telemetry.ErrSettings):
		return exit.Usage, "docs/telemetry.md lists the settings and variables"
	case errors.Is(err, statedir.ErrNewerForm):
		return exit.NoNode, "install the newer troupe; this one has touched nothing"
	case errors.Is(err, node.ErrConnectionClosed):
		return exit.NoNode, "start it again: it, or another node, continues the runs; if the credentials have changed, give the new ones"
	case errors.Is(err, bus.ErrNoLeader):
		return exit.NoNode, "start the other servers: a leader needs more than half of them; --server-wait waits longer"
	case errors.Is(err, shard.ErrTTL):
		return exit.Usage, "give a longer --lease-ttl, or a faster disk to the servers"
	case errors.Is(err, bus.ErrNoJetStream):
		return exit.NoNode, "enable JetStream on the server (nats-server -js) or for this account"
	case errors.Is(err, bus.ErrUnfit):
		return exit.NoNode, "docs/profiles.md lists what each profile needs; --durability lazy needs less"
	case errors.Is(err, bus.ErrKeyFile):
		return exit.Usage, "--nkey (NATS_NKEY) names the file with the seed of the user"
	case errors.Is(err, bus.ErrCredentials):
		return exit.NoNode, "give --creds, --nkey, --user or --token, or a --context of the nats CLI"
	case errors.Is(err, statedir.ErrNoServer):
		return exit.NoNode, "start it, name another with -s, or leave -s out for a server in process"
	case errors.Is(err, statedir.ErrUntrusted):
		return exit.NoNode, "choose another --store-dir; chmod 700 this one only if you trust every user who could write to it"
	case errors.Is(err, statedir.ErrStateDir):
		return exit.NoNode, "close it to others with chmod 700, or use another --store-dir"
	case errors.Is(err, httpapi.ErrListen):
		return exit.NoNode, "another --http HOST:PORT, or --http off"
	case errors.Is(err, statedir.ErrHTTPToken):
		return exit.NoNode, "--http-token-file names another file, --http off does without"
	case errors.Is(err, httpapi.ErrToken):
		return exit.Usage, "make one with: openssl rand -hex 32"
	case errors.Is(err, node.ErrHTTPToken):
		return exit.Usage, "make one with: openssl rand -hex 32 > FILE"
	case errors.Is(err, localserver.ErrStart):
		return exit.NoNode, "another --nats-port or --store-dir may help; -v shows the server's log"
	case isProblemOfFile(err):
		return exit.Usage, "troupe config validate shows all that is wrong; see " + agentfile.PageOf(err)
	case errors.Is(err, config.ErrSetting), errors.Is(err, errConfiguration), errors.Is(err, names.ErrNodeName):
		return exit.Usage, "troupe-node --help lists the flags"
	case errors.Is(err, errNode):
		return exit.Failed, ""
	}
	return exit.Usage, "troupe-node --help lists the flags"
}

func isProblemOfFile(err error) bool {
	_, ok := errors.AsType[*agentfile.Problem](err)
	return ok
}

// errNode marks errors that occur while the node runs.
var errNode = errors.New("node")
