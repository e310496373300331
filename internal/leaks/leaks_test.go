package leaks

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Who ends late is no leak.
func TestWhoEndsLateIsNoLeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	over := make(chan struct{})
	go func() { <-over }()
	time.AfterFunc(2*time.Second, func() { close(over) }) // goleak alone would have found it
	if err := Find(before); err != nil {
		t.Error(err)
	}
}

// Who stays is one.
func TestWhoStaysIsALeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	over := make(chan struct{})
	go func() { <-over }()
	if find(time.Second, []goleak.Option{before}) == nil {
		t.Error("it was not found")
	}
	close(over)
}
