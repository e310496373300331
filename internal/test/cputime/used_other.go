//go:build !unix

package cputime

import (
	"testing"
	"time"
)

var began = time.Now()

// Used is the time since this process began: more than it has used of a processor.
func Used(testing.TB) time.Duration { return time.Since(began) }
