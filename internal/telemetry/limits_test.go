package telemetry

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

func TestRetryAfterIsLimited(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]time.Duration{"": 0, "0": 0, "3": 3 * time.Second, "10": pauseMax, "11": 0, "-1": 0, "soon": 0} {
		if got := retryAfter(http.Header{"Retry-After": {given}}); got != want {
			t.Errorf("%q: %v, want %v", given, got, want)
		}
	}
}

// The mask knows a credential as the variable holds it, as the receiver gets it, and without its scheme; also if the
// variable cannot be read.
func TestSecretsOfHeaders(t *testing.T) {
	t.Parallel()
	for given, want := range map[string][]string{
		"authorization=Basic%20dXNlcjpw%3D": {"Basic%20dXNlcjpw%3D", "Basic dXNlcjpw=", "dXNlcjpw="},
		"x=secret%zz":                       {"secret%zz"},
		"secret":                            {"secret"},
	} {
		got := SecretsOf(func(key string) string { return map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": given}[key] })
		for _, secret := range want {
			if !slices.Contains(got, secret) {
				t.Errorf("%q: %q without %q", given, got, secret)
			}
		}
	}
}

// A queue has a limit in bytes, too, and counts down what is taken.
func TestQueueIsLimitedInBytes(t *testing.T) {
	t.Parallel()
	q := newSpanQueue(queueMost)
	large := span{attributes: []attribute{{keyArguments, strings.Repeat("x", 1<<20)}}}
	for range 20 {
		q.add(large)
	}
	if n := q.count(); n > queueBytesMax>>20+1 || int64(n)+q.dropped.Load() != 20 {
		t.Errorf("%d wait, %d are dropped", n, q.dropped.Load())
	}
	q.take(20)
	if q.bytes != 0 {
		t.Errorf("%d bytes are left", q.bytes)
	}
}

// A node follows a bounded number of logs, and forgets none before that.
func TestFollowedLogsAreLimited(t *testing.T) {
	t.Parallel()
	x := &Exporter{followed: map[mailbox.Address]*followedLog{}}
	for i := range followedMax + 10 {
		x.follow(mailbox.At(fmt.Sprint(i), "root"))
	}
	if len(x.followed) != followedMax {
		t.Errorf("%d logs", len(x.followed))
	}
}

// The span of a run begins at its first entry, and its parent is the span of the program that started it.
func TestRunSpanBeginsWithTheRun(t *testing.T) {
	t.Parallel()
	f := runFacts{trace: traceOf("r", "00-"+strings.Repeat("1", 32)+"-"+strings.Repeat("2", 16)+"-01"), openedMS: 5}
	end := event.Published{Run: "r", TS: event.FormatStamp(9)}
	p := f.encode(runSpan(end, event.Result{}, nil), func(s string) string { return s })
	if p.StartTimeUnixNano != 5_000_000 || p.EndTimeUnixNano != 9_000_000 || string(p.ParentSpanId) != string(f.trace.parent[:]) {
		t.Error(p)
	}
}

// A node reads the logs of a shard again if it takes the shard of a node that died, and only then.
func TestShardOfADeadNodeIsReadAgain(t *testing.T) {
	t.Parallel()
	r := httptest.NewServer(http.NotFoundHandler())
	defer r.Close()
	read := make(chan int, 2)
	x, _ := startTestExporter(t, r.URL, nil, func(c *Config) {
		c.ShardHeads = func(_ context.Context, _ string, shard int, _ func(mailbox.Head) error) error {
			read <- shard
			return nil
		}
	})
	for shard, why := range []string{"balance", shardExpired} {
		x.Observe(event.Published{Kind: event.KindShardTaken, Data: event.ShardMoved{Shard: shard, Why: why}})
	}
	x.Close()
	close(read)
	if got := <-read; got != 1 || len(read) != 0 {
		t.Errorf("shard %d was read, and %d more", got, len(read))
	}
}

// A receiver that asks for it gets compressed spans.
func TestCompressedSpans(t *testing.T) {
	t.Parallel()
	var spans int
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var raw []byte
		body, err := gzip.NewReader(q.Body)
		if err == nil {
			raw, err = io.ReadAll(body)
		}
		var data tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(raw, &data)
		}
		if err != nil || q.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%v: %v", q.Header, err)
			return
		}
		spans = len(data.ResourceSpans[0].ScopeSpans[0].Spans)
	}))
	defer r.Close()
	x, _ := startTestExporter(t, r.URL, map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
	for _, e := range agentEvents("root", 2) {
		x.Observe(e)
	}
	x.Close()
	if s := x.Stats(); s.Exported != 3 || spans != 3 {
		t.Errorf("%+v, %d spans", s, spans)
	}
}
