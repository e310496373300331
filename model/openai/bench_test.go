package openai_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
)

func BenchmarkChat(b *testing.B)      { wiretest.Bench(b, chat.Dialect()) }
func BenchmarkResponses(b *testing.B) { wiretest.Bench(b, responses.Dialect()) }

// TestCallsAllocateLittle holds what BenchmarkChat and BenchmarkResponses print of small and long replies.
func TestCallsAllocateLittle(t *testing.T) {
	wiretest.CheckAllocations(t, chat.Dialect(), wiretest.AllocationLimits{Call: 160, Turn: 0.5, Piece: 1.3})
	wiretest.CheckAllocations(t, responses.Dialect(), wiretest.AllocationLimits{Call: 360, Turn: 14, Piece: 1.4})
}
