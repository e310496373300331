package anthropic_test

import (
	"testing"

	"github.com/troupe-run/troupe/test/dialect/messages"
	"github.com/troupe-run/troupe/test/wiretest"
)

func BenchmarkMessages(b *testing.B) { wiretest.Bench(b, messages.Dialect()) }
