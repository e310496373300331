package host

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/tool/mask"
)

// secretEnv is how variables are called that hold a secret.
var secretEnv = regexp.MustCompile(`(?i)(^|_)(PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|SECRETS?|TOKENS?|KEY|APIKEY|CREDENTIALS?|AUTH|COOKIE|DSN)($|_)`)

// SecretBytesMin is the shortest value of a variable or a credential that is
// taken for a secret.
const SecretBytesMin = 8

// plainWord is a value that nobody made to be a secret: "not-needed", "ollama".
// To mask it would take ordinary words out of ordinary texts.
var plainWord = regexp.MustCompile(`^[A-Za-z]+([-_. ][A-Za-z]+)*$`)

// plainBytesMax is how long words may be and still be plain.
const plainBytesMax = 24

// notSecret are values of variables with telling names that are no secrets.
var notSecret = regexp.MustCompile(`^(?:~?/|\./|[A-Za-z]:\\|[+-]?[0-9.]+$)`)

func worth(v string) bool {
	return len(v) >= SecretBytesMin && !(len(v) <= plainBytesMax && plainWord.MatchString(v)) && !notSecret.MatchString(v)
}

// Secrets masks the values that a node with this configuration knows as secrets,
// for those who say something beside it.
func Secrets(c Config) *mask.Masker { return c.withDefaults().secrets() }

// secrets are the values that must not leave this process by any exit: the keys
// and addresses of providers, the credentials of servers, and what variables
// with telling names hold. docs/secrets.md says what is promised.
// more are others that are known to be secrets.
func (c Config) secrets(more ...string) *mask.Masker {
	values := slices.Clone(more)
	add := func(list ...string) {
		for _, v := range list {
			if v = strings.TrimSpace(v); worth(v) && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	for _, name := range pick.Keys() {
		add(c.Env(name))
	}
	for _, name := range pick.Addresses() {
		add(inAddress(c.Env(name))...)
	}
	for _, o := range []*struct{ Servers, User, Password, Token string }{
		{c.Bus.Servers, c.Bus.User, c.Bus.Password, c.Bus.Token}, {c.Doors.Servers, c.Doors.User, c.Doors.Password, c.Doors.Token},
		{c.System.Servers, c.System.User, c.System.Password, c.System.Token}} {
		add(o.Password, o.Token)
		if o.Password == "" {
			add(o.User) // a token, as the nats CLI has it
		}
		for server := range strings.SplitSeq(o.Servers, ",") {
			add(inAddress(server)...)
		}
	}
	for _, pair := range c.Environ {
		name, v, _ := strings.Cut(pair, "=")
		if secretEnv.MatchString(name) && name != "PWD" && name != "OLDPWD" {
			add(v)
		}
		if strings.Contains(v, "://") {
			add(inAddress(v)...)
		}
	}
	return mask.New(mask.Config{Values: values})
}

// inAddress are the secrets of a URL: its password, or its user if that is all
// there is, and what its parameters give to telling names.
func inAddress(v string) []string {
	u, err := url.Parse(strings.TrimSpace(v))
	if err != nil {
		return nil
	}
	var found []string
	if u.User != nil {
		password, ok := u.User.Password()
		if !ok {
			password = u.User.Username()
		}
		found = append(found, password, u.User.String())
	}
	for name, values := range u.Query() {
		if secretEnv.MatchString(name) || strings.HasSuffix(strings.ToLower(name), "key") {
			found = append(found, values...)
		}
	}
	return found
}

// environ is the whole environment of a node that has the real one.
func environ(c Config) []string {
	if c.Environ == nil && c.Env == nil {
		return os.Environ()
	}
	return c.Environ
}
