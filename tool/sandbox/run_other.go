//go:build !linux

package sandbox

import (
	"context"
	"runtime"

	"github.com/troupe-run/troupe/tool/proc"
)

func run(ctx context.Context, spec Spec, temp string) (Output, error) {
	why := "there is no sandbox for " + runtime.GOOS
	o := Output{Report: Report{{Files, false, why}, {Network, false, why}, {Leftovers, false, "only the process group is killed"}, {Isolation, false, why},
		{Privileges, false, why}, {Memory, false, why}, {Processes, false, why}}}
	out, err := proc.Run(ctx, proc.Spec{Argv: []string{"/bin/sh", "-c", "exec 2>&1\n" + spec.Command}, Dir: spec.Dir, Env: environment(spec.Env, temp), StdoutMax: spec.Output})
	o.Output = out
	return o, err
}
