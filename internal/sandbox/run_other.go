//go:build !linux

package sandbox

import (
	"context"
	"runtime"

	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/workdir"
)

func run(ctx context.Context, spec Spec, temp string) (Output, error) {
	why := "there is no sandbox for " + runtime.GOOS
	o := Output{Report: Report{{Files, false, why}, {Git, false, why}, {Network, false, why}, {Leftovers, false, "only the process group is killed"}, {Isolation, false, why},
		{Privileges, false, why}, {Memory, false, why}, {Processes, false, why}}}
	if len(spec.Hide) > 0 {
		o.Report = append(o.Report, Finding{Trust, false, why})
	}
	argv := []string{"/bin/sh", "-c", "exec 2>&1\n" + spec.Command}
	if len(spec.Argv) > 0 {
		argv = append([]string{spec.path}, spec.Argv[1:]...)
	}
	if err := workdir.CheckSame(spec.Dir, spec.info); err != nil {
		return o, err
	}
	out, err := process.Run(ctx, process.Spec{Argv: argv, Dir: spec.Dir, Env: commandEnv(spec.Env, temp), StdoutMax: spec.Output, HeadOnly: spec.HeadOnly})
	o.Output = out
	if err == nil { // its effects elsewhere cannot be undone; its output is not returned
		if err = workdir.CheckSame(spec.Dir, spec.info); err != nil {
			o.Stdout = nil
		}
	}
	return o, err
}
