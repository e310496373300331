package session

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/term"
)

// HintFlags returns the flags with which another command reaches the same node, as they were given to this one,
// with a space before each. Passwords and tokens are not among them.
func (o *Opener) HintFlags() string {
	var b strings.Builder
	given := o.Conn.Given
	for _, f := range []struct{ name, value string }{{"store-dir", AbsolutePath(o.StateDir)}, {"server", given.Servers}, {"context", given.Context}, {"creds", AbsolutePath(given.Creds)},
		{"nkey", AbsolutePath(given.NKey)}, {"as", given.As}, {"user", given.User}, {"tlscert", AbsolutePath(given.TLSCert)}, {"tlskey", AbsolutePath(given.TLSKey)}, {"tlsca", AbsolutePath(given.TLSCA)}} {
		switch {
		case f.value == "", f.name == "user" && given.Password == "", f.name == "server" && strings.Contains(f.value, "@"):
			continue // a user without a password is a token, and the address of a server may hold a password
		}
		b.WriteString(" --" + f.name + " " + QuoteForShell(f.value))
	}
	return b.String()
}

// AbsolutePath is a path of a command line that may be pasted in another directory. "" stays "".
func AbsolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// QuoteForShell quotes a word so that a POSIX shell reads it as it is.
func QuoteForShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Command returns a command line about a run that works when it is pasted: it names the state directory or the
// server, if this command was given one.
func (s *Session) Command(words string) string { return "troupe " + words + s.flags }

// RememberGiven keeps the flags about the server before the environment fills them in.
func (c *ConnFlags) RememberGiven() { c.Given = c.Options }

// givenOptions are options as flags gave them.
type givenOptions = bus.Options

// DescribeInterrupted names the command that continues an interrupted run.
func (s *Session) DescribeInterrupted(r client.RunInfo) string {
	if r.ContinueWith != "" {
		return fmt.Sprintf("no process works on %s; %s", term.CleanLine(r.RunID), term.CleanLine(r.ContinueWith))
	}
	return fmt.Sprintf("no process works on %s; %s continues it", term.CleanLine(r.RunID), s.Command("run --resume "+term.CleanLine(r.RunID)))
}
