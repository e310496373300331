package anthropic_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/wiretest"
)

func BenchmarkMessages(b *testing.B) { wiretest.Bench(b, messages.Dialect()) }
