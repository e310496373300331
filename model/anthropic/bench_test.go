package anthropic_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/wiretest"
)

func BenchmarkMessages(b *testing.B) { wiretest.Bench(b, messages.Dialect()) }

// TestCallsAllocateLittle holds what BenchmarkMessages prints of small and long replies.
func TestCallsAllocateLittle(t *testing.T) {
	wiretest.CheckAllocations(t, messages.Dialect(), wiretest.AllocationLimits{Call: 280, Turn: 13, Piece: 1.4})
}
