package run

import (
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// httpLine returns the address of the HTTP API, or a note that another process owns the node; "" without --http.
func (cs *Commands) httpLine(s *session.Session) string {
	st := cs.Console.ErrStyle
	switch {
	case cs.Sessions.HTTP == "":
		return ""
	case s.Node == nil:
		return st.Yellow("note: --http has no effect: the node is in another process")
	}
	return st.Dim("http   ") + term.CleanLine(s.Node.HTTPURL()) + st.Dim("   token: ") + term.CleanLine(statedir.HTTPTokenPath(statedir.StateDir(cs.Sessions.StateDir)))
}
