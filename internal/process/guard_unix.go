//go:build unix

package process

import (
	"os"
	"os/exec"
	"strconv"
)

// guardScript waits for the word "done". If the pipe ends without it, the process at the other
// end is gone, and the script kills the group.
const guardScript = `read -r word; [ "$word" = done ] || kill -s KILL -- "-$0" 2>/dev/null`

// guardGroup kills a group when this process is gone, for whatever reason. release ends the
// guard.
func guardGroup(group int) (release func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}, err
	}
	cmd := exec.Command("/bin/sh", "-c", guardScript, strconv.Itoa(group))
	cmd.Env, cmd.Stdin = []string{}, r
	ownGroup(cmd) // the terminal's Ctrl-C must not reach it
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return func() {}, err
	}
	return func() {
		_, _ = w.WriteString("done\n") // a killed guard cannot be told
		_ = w.Close()
		_ = cmd.Wait()
	}, nil
}
