package tool_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/troupe-run/troupe/tool"
)

//behaviour:shows C5
func TestAFailureThatMayPassIsMarked(t *testing.T) {
	busy := errors.New("HTTP 503")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"said by the tool":       {fmt.Errorf("fetch: %w", tool.Transient(busy)), true},
		"connection refused":     {&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, true},
		"connection reset":       {fmt.Errorf("read: %w", syscall.ECONNRESET), true},
		"a timeout of its own":   {fmt.Errorf("fetch: %w", context.DeadlineExceeded), true},
		"anything else":          {busy, false},
		"no such host":           {&net.DNSError{Err: "no such host", IsNotFound: true}, false},
		"what the tool canceled": {context.Canceled, false},
	} {
		set := buildSet(t, func(context.Context, addArgs, tool.Call) (string, error) { return "", c.err })
		if r := runTool(t, set, `{"a":1}`); !r.Error || r.Transient != c.want || r.Text != c.err.Error() {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if err := tool.Transient(busy); err.Error() != "HTTP 503" || !errors.Is(err, busy) || tool.Transient(nil) != nil {
		t.Errorf("%v", err)
	}
}
