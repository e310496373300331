// Package approval prepares questions to people about calls, on the node where a call would run: it
// shows what the call would change there, and which protections the system lacks. The permissions of the
// task have decided that a person is asked.
package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/sandbox"
	"github.com/troupe-run/troupe/internal/toolset/shell"
)

// QuestionBytesMax is the maximum size of a command in a question: the user cannot approve
// text that is not shown.
const QuestionBytesMax = 1400

// PrepareQuestion asks a person about a call, for the permissions of its task: it is the function of
// spec.PermissionHook.
func PrepareQuestion(ctx context.Context, c hook.Call) (spec.HookAnswer, error) {
	return PrepareWithProtections(ctx, c, MissingProtections)
}

// PrepareWithProtections is PrepareQuestion with a function that reports which sandbox protections this
// system lacks. The question names them, so that on another node, which lacks others, the user is asked
// again.
func PrepareWithProtections(ctx context.Context, c hook.Call, missing func(context.Context) string) (spec.HookAnswer, error) {
	var q spec.PermissionQuery
	if err := json.Unmarshal([]byte(c.Hook.Rules), &q); err != nil {
		return spec.HookAnswer{}, fmt.Errorf("the question cannot be read: %w", err)
	}
	why := q.Why
	if c.Data.Tool == shell.Name {
		lacks := missing(ctx)
		switch {
		case lacks == "" && q.Confined:
			return spec.HookAnswer{}, nil
		case lacks != "" && q.OnlyConfined:
			return spec.HookAnswer{Decision: spec.HookDeny, Text: why + "; this system does not enforce: " + lacks}, nil
		case len(c.Data.Args) > QuestionBytesMax:
			return spec.HookAnswer{Decision: spec.HookDeny, Text: fmt.Sprintf("a person must agree to it, and it is too long to be shown: %d bytes, at most %d", len(c.Data.Args), QuestionBytesMax)}, nil
		case lacks != "":
			why += "; this system does not enforce: " + lacks
		}
	}
	if failure := findCertainFailure(c.Workspace, c.Data.Tool, c.Data.Args); failure != "" {
		return spec.HookAnswer{Decision: spec.HookDeny, Text: "nobody was asked, because the call cannot succeed: " + failure}, nil
	}
	a := spec.HookAnswer{Decision: spec.HookAsk, Text: why}
	if slices.Contains(permission.WriteTools, c.Data.Tool) {
		a.Shows = showChange(c.Workspace, c.Data.Tool, c.Data.Args)
	}
	return a, nil
}

var probeCache struct {
	sync.Mutex
	missing *string
}

// MissingProtections returns the protections that this system lacks for confining a command to its
// directory; "" if it lacks none. It probes the sandbox once per process.
func MissingProtections(ctx context.Context) string {
	probeCache.Lock()
	defer probeCache.Unlock()
	if probeCache.missing != nil {
		return *probeCache.missing
	}
	report, err := sandbox.Probe(ctx)
	if err != nil {
		return err.Error()
	}
	var missing sandbox.Report
	for _, f := range report.Missing() {
		if f.What == sandbox.Files || f.What == sandbox.Git || f.What == sandbox.Network {
			missing = append(missing, f)
		}
	}
	text := missing.String()
	probeCache.missing = &text
	return text
}
