package session

import (
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/mcpclient"
)

// UserServerFile is the file in which the user names MCP servers.
func UserServerFile() string {
	return filepath.Join(filepath.Dir(config.UserFile()), mcpclient.UserFileName)
}

// ConnFlags are the flags of the nats CLI.
type ConnFlags struct {
	bus.Options
	Given givenOptions // the flags alone, without the environment
}

// AddFlags adds the flags of the nats CLI.
func (c *ConnFlags) AddFlags(f *pflag.FlagSet) {
	f.StringVarP(&c.Servers, "server", "s", "", "NATS server URLs (NATS_URL)")
	f.StringVar(&c.Context, "context", "", "nats CLI context (NATS_CONTEXT)")
	f.StringVar(&c.Creds, "creds", "", "user credentials file (NATS_CREDS)")
	f.StringVar(&c.NKey, "nkey", "", "user nkey seed file (NATS_NKEY)")
	f.StringVar(&c.User, "user", "", "user name, or token without --password (NATS_USER)")
	f.StringVar(&c.Password, "password", "", "password (NATS_PASSWORD)")
	f.StringVar(&c.Token, "token", "", "token (NATS_TOKEN)")
	f.StringVar(&c.As, "as", "", "name of the owner that you are on a shared server whose operator gives owners names (TROUPE_AS)")
	f.StringVar(&c.TLSCert, "tlscert", "", "TLS certificate (NATS_CERT)")
	f.StringVar(&c.TLSKey, "tlskey", "", "TLS private key (NATS_KEY)")
	f.StringVar(&c.TLSCA, "tlsca", "", "TLS certificate authority (NATS_CA)")
}

// Environment returns the given options as environment variables for a child process.
func (c *ConnFlags) Environment() []string {
	return []string{"NATS_URL=" + c.Servers, "NATS_CONTEXT=" + c.Context, "NATS_CREDS=" + c.Creds, "NATS_NKEY=" + c.NKey, "NATS_USER=" + c.User,
		"NATS_PASSWORD=" + c.Password, "TROUPE_AS=" + c.As, "NATS_TOKEN=" + c.Token, "NATS_CERT=" + c.TLSCert, "NATS_KEY=" + c.TLSKey, "NATS_CA=" + c.TLSCA}
}
