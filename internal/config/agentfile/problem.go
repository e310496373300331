package agentfile

import (
	"errors"
	"fmt"
	"strings"
)

// Problem explains why a file, or a value in it, cannot be used.
type Problem struct {
	Path string
	Line int // 0: the file as a whole
	Err  error
}

func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// Text returns the problem without its position.
func (p *Problem) Text() string { return strings.TrimPrefix(p.Err.Error(), "agentfile: ") }

// SplitProblems splits the error of Parse or Load into its problems, in order. A problem without
// a file has an empty path.
func SplitProblems(err error) []*Problem {
	if err == nil {
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var list []*Problem
		for _, e := range all.Unwrap() {
			list = append(list, SplitProblems(e)...)
		}
		return list
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return []*Problem{{Err: err}}
}
