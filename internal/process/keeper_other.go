//go:build !linux

package process

import (
	"os/exec"
	"time"
)

// keeperEnd is for systems that have keepers.
const keeperEnd = time.Duration(0)

// keeping is a keeper, which only Linux has: elsewhere a program that leaves its group is not found.
type keeping struct{}

func keep(*exec.Cmd) (*keeping, error) { return nil, nil }

func (*keeping) started() error { return nil }

func (*keeping) release() {}

func (*keeping) abandon() {}
