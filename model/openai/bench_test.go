package openai_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
)

func BenchmarkChat(b *testing.B)      { wiretest.Bench(b, chat.Dialect()) }
func BenchmarkResponses(b *testing.B) { wiretest.Bench(b, responses.Dialect()) }
