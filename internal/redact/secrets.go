package redact

import (
	"net/url"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// secretVariable matches the names of variables that hold a secret.
var secretVariable = lazyregexp.New(`(?i)(^|_)(PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|SECRETS?|TOKENS?|KEY|APIKEY|CREDENTIALS?|AUTH|COOKIE|DSN)($|_)`)

// SecretBytesMin is the minimum length of a variable's or a credential's value to count as
// a secret.
const SecretBytesMin = 8

// plainWord matches a value that is a placeholder, not a secret: "not-needed", "ollama".
// Masking it would remove ordinary words from ordinary texts.
var plainWord = lazyregexp.New(`^[A-Za-z]+([-_. ][A-Za-z]+)*$`)

// plainBytesMax is the maximum length of words that count as plain.
const plainBytesMax = 24

// notSecret are values that are no secrets although the names of their variables suggest
// it.
var notSecret = lazyregexp.New(`^(?:~?/|\./|[A-Za-z]:\\|[+-]?[0-9.]+$)`)

// isSecret reports whether a value from a place for secrets looks like one.
func isSecret(v string) bool {
	return len(v) >= SecretBytesMin && !(len(v) <= plainBytesMax && plainWord.MatchString(v)) && !notSecret.MatchString(v)
}

// secretValues returns the values of a configuration that must not leave the process.
// docs/secrets.md states the guarantee.
func (c Config) secretValues() []string {
	values := slices.Clone(c.Values)
	add := func(list ...string) {
		for _, v := range list {
			if v = strings.TrimSpace(v); isSecret(v) {
				values = append(values, v)
			}
		}
	}
	add(c.Credentials...)
	for _, address := range c.Addresses {
		add(addressSecrets(address)...)
	}
	for _, pair := range c.Environ {
		name, v, _ := strings.Cut(pair, "=")
		if secretVariable.MatchString(name) && name != "PWD" && name != "OLDPWD" {
			add(v)
		}
		if strings.Contains(v, "://") {
			add(addressSecrets(v)...)
		}
	}
	return values
}

// addressSecrets returns the secrets of a URL: its password, or its user if there is no
// password, and the values of parameters with names that suggest secrets.
func addressSecrets(v string) []string {
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
		if secretVariable.MatchString(name) || strings.HasSuffix(strings.ToLower(name), "key") {
			found = append(found, values...)
		}
	}
	return found
}
