package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/internal/process/keeper"
)

// keeperEnd is how long a keeper may take, after TermGrace, to find and kill the descendants of a
// program.
const keeperEnd = 10 * time.Second

// keeperStart is how long a keeper may take to start its program.
const keeperStart = 30 * time.Second

// keeperHandle is the parent's side of a keeper.
type keeperHandle struct {
	life, failed *os.File
	childEnds    []*os.File
}

// wrapInKeeper makes a command that has not started, and has its group, the command of a keeper. nil: this system
// cannot.
func wrapInKeeper(cmd *exec.Cmd) (*keeperHandle, error) {
	if _, err := os.Stat("/proc/self/exe"); err != nil || cmd.Err != nil {
		return nil, nil
	}
	description := keeper.Description{Files: len(cmd.ExtraFiles), Attr: cmd.SysProcAttr}
	if read, err := keeper.ParseDescription(description.Numbers()); err != nil || !reflect.DeepEqual(read, description) {
		return nil, fmt.Errorf("the keeper cannot pass on the process attributes %+v", *cmd.SysProcAttr)
	}
	theirLife, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	failed, theirFailed, err := os.Pipe()
	if err != nil {
		closeAll(theirLife, life)
		return nil, err
	}
	ends := []*os.File{theirLife, theirFailed}
	cmd.Path, cmd.Args, cmd.ExtraFiles = "/proc/self/exe", append([]string{keeper.Name, description.Numbers(), cmd.Path}, cmd.Args...), append(ends, cmd.ExtraFiles...)
	cmd.SysProcAttr = nil
	ownGroup(cmd)
	return &keeperHandle{life: life, failed: failed, childEnds: ends}, nil
}

// awaitStart returns once the program runs, or with the reason why it does not. It is called once, after the
// keeper was started.
func (k *keeperHandle) awaitStart() error {
	closeAll(k.childEnds...)
	_ = k.failed.SetReadDeadline(time.Now().Add(keeperStart))
	why, _ := io.ReadAll(k.failed) // a slower start is waited for like any program
	_ = k.failed.Close()
	if len(why) == 0 {
		return nil
	}
	number, text, _ := strings.Cut(string(why), " ")
	errno, err := strconv.Atoi(number)
	if err != nil || errno == 0 {
		return errors.New(text)
	}
	return fmt.Errorf("%s%w", strings.TrimSuffix(text, syscall.Errno(errno).Error()), syscall.Errno(errno))
}

// release ends the hold: a keeper that is still running kills its program.
func (k *keeperHandle) release() { closeAll(k.life) }

// abandon is for a keeper that was not started.
func (k *keeperHandle) abandon() {
	if k == nil {
		return
	}
	closeAll(k.childEnds...)
	closeAll(k.life, k.failed)
}
