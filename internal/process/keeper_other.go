//go:build !linux

package process

import (
	"os/exec"
	"time"
)

// keeperEnd is for systems that have keepers.
const keeperEnd = time.Duration(0)

// keeperHandle is a keeper, which only Linux has: elsewhere a program that leaves its group is not found.
type keeperHandle struct{}

func wrapInKeeper(*exec.Cmd) (*keeperHandle, error) { return nil, nil }

func (*keeperHandle) awaitStart() error { return nil }

func (*keeperHandle) release() {}

func (*keeperHandle) abandon() {}
