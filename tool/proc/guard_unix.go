//go:build unix

package proc

import (
	"os"
	"os/exec"
	"strconv"
)

// guardian waits for a word. If the pipe ends without it, whoever had the other
// end is gone, and so is the group.
const guardian = `read -r word; [ "$word" = done ] || kill -s KILL -- "-$0" 2>/dev/null`

// guard ends a group when this process is gone, in whatever way. release ends
// the guard.
func guard(group int) (release func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}, err
	}
	cmd := exec.Command("/bin/sh", "-c", guardian, strconv.Itoa(group))
	cmd.Env, cmd.Stdin = []string{}, r
	ownGroup(cmd) // a terminal's Ctrl-C is not for it
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return func() {}, err
	}
	return func() {
		_, _ = w.WriteString("done\n") // to one that was killed there is nothing to say
		_ = w.Close()
		_ = cmd.Wait()
	}, nil
}
