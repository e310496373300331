// Package metrics counts what a node's events say, for Prometheus. It holds no text of people, models
// or tools.
package metrics

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

// Config of a Recorder.
type Config struct {
	Node, Version string
	// Read returns the gauges at this moment.
	Read   func() Gauges
	Logger *slog.Logger
}

// Gauges are the state of a node at one moment.
type Gauges struct {
	RunsActive, RunsQueued      int
	AgentsResting               int64
	MailboxMessages             int64
	EventsDropped               int64 // so far
	SpansExported, SpansDropped int64 // so far
	SpansWaiting                int
	LogsWritable, Ready         bool
}

// Recorder holds the metrics of one node.
type Recorder struct {
	registry *prometheus.Registry
	handler  http.Handler
	instruments
	labels labelLimit

	mu                 sync.Mutex
	agents             map[string]liveAgent // by address
	runs               map[string]liveRun   // by id
	pendingDelegations pendingDelegations
	actors             map[mailbox.Address]liveActor
}

// liveRun is a run whose supervisor is on this node. Without a model, it began on another.
type liveRun struct {
	model  string
	budget event.BudgetChanged
}

// liveAgent is an agent whose start was seen here.
type liveAgent struct {
	name  string
	began time.Time
	calls int
	// Of the model call under way: when its first and its newest piece of text came.
	firstChunk, chunk time.Time
	model             string
}

// New returns a Recorder that has seen nothing.
func New(cfg Config) *Recorder {
	r := &Recorder{registry: prometheus.NewRegistry(), instruments: newInstruments(), labels: labelLimit{seen: map[string]map[string]struct{}{}},
		agents: map[string]liveAgent{}, runs: map[string]liveRun{}, pendingDelegations: pendingDelegations{asked: map[string]time.Time{}}, actors: map[mailbox.Address]liveActor{}}
	r.registry.MustRegister(r.all()...)
	r.registry.MustRegister(&stateCollector{read: cfg.Read, budgets: r.sumBudgets, actors: r.countActors,
		build: prometheus.NewDesc(buildInfo, "Build of the node; always 1.", nil, prometheus.Labels{ownVersion: cfg.Version, ownNode: cfg.Node})})
	r.handler = promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{ErrorLog: errorLog{cfg.Logger}, MaxRequestsInFlight: scrapesAtOnce})
	return r
}

// scrapesAtOnce is how many answers of /metrics are written at once.
const scrapesAtOnce = 4

// ServeHTTP writes the metrics in the text format of Prometheus.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) { r.handler.ServeHTTP(w, q) }

// Gather returns the metrics as they are now.
func (r *Recorder) Gather() ([]*dto.MetricFamily, error) {
	families, err := r.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return families, nil
}

// errorLog passes the errors of the exposition on.
type errorLog struct{ logger *slog.Logger }

func (l errorLog) Println(v ...any) { l.logger.Warn("the metrics cannot be written", "error", v) }

// sumBudgets adds the limits and reservations of the runs that are known here.
func (r *Recorder) sumBudgets() (limit, reserved int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.runs {
		limit, reserved = limit+l.budget.Limit.Tokens, reserved+l.budget.Reserved
	}
	return limit, reserved
}

// labelLimit bounds the values of labels: names of models, tools and agents come from files and from
// models, which may be of anybody.
type labelLimit struct {
	mu   sync.Mutex
	seen map[string]map[string]struct{}
}

// labelText returns a text as the value of a label has it.
func labelText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), valueBytesMax)], "")
}

// value returns the value of a label, or valueOfTooMany.
func (l *labelLimit) value(label, text string) string {
	text = labelText(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.seen[label]
	if known == nil {
		known = map[string]struct{}{}
		l.seen[label] = known
	}
	if _, ok := known[text]; !ok {
		if len(known) >= valuesMax {
			return valueOfTooMany
		}
		known[strings.Clone(text)] = struct{}{}
	}
	return text
}

// valueOnceKnown returns the value of a label whose texts models and requests can invent: exists says that the text is
// the name of something, because a call of it succeeded. Texts that have never existed are valueOfTooMany, or invented
// ones would take the place of real ones until the node starts again.
func (l *labelLimit) valueOnceKnown(label, text string, exists bool) string {
	if exists {
		return l.value(label, text)
	}
	text = labelText(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.seen[label][text]; ok {
		return text
	}
	return valueOfTooMany
}

// stateCollector reads the gauges when they are asked for.
type stateCollector struct {
	read    func() Gauges
	budgets func() (limit, reserved int64)
	actors  func() map[string]int // in memory, by the name of the agent
	build   *prometheus.Desc
}

var gaugeHelp = []struct{ name, help string }{
	{runsActive, "Runs that are live on this node."},
	{runsQueued, "Runs that wait until fewer runs are live on this node."},
	{mailboxMessages, "Entries that actors in memory were sent and have not read."},
	{agentsResting, "Passivated actors in the logs of this node: they wait for a person, another agent or the clock."},
	{spansWaiting, "Spans that wait to be sent."},
	{logsWritable, "1 if the node can write its logs, 0 if entries wait."},
	{nodeReady, "1 if the node can take work, as /readyz says."},
	{budgetLimit, "Token limits of the runs whose supervisor is on this node, added."},
	{budgetReserved, "Tokens reserved by the runs whose supervisor is on this node, added."},
}

var gaugeDescs = describeGauges()

// counterHelp are the counters that other parts of the node keep.
var counterHelp = []struct {
	desc *prometheus.Desc
	read func(Gauges) int64
}{
	{prometheus.NewDesc(eventsDropped, "Events that were not published because the connection did not accept them; the logs have them.", nil, nil), func(g Gauges) int64 { return g.EventsDropped }},
	{prometheus.NewDesc(spansExported, "Spans that the OTLP receiver accepted.", nil, nil), func(g Gauges) int64 { return g.SpansExported }},
	{prometheus.NewDesc(spansDropped, "Spans that were not sent: the OTLP receiver was too slow, did not answer or rejected them.", nil, nil), func(g Gauges) int64 { return g.SpansDropped }},
}

func describeGauges() map[string]*prometheus.Desc {
	descs := map[string]*prometheus.Desc{}
	for _, g := range gaugeHelp {
		descs[g.name] = prometheus.NewDesc(g.name, g.help, nil, nil)
	}
	return descs
}

func (c *stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, g := range gaugeHelp {
		to <- gaugeDescs[g.name]
	}
	for _, counter := range counterHelp {
		to <- counter.desc
	}
	to <- agentsActiveDesc
	to <- c.build
}

func (c *stateCollector) Collect(to chan<- prometheus.Metric) {
	g := c.read()
	limit, reserved := c.budgets()
	for name, v := range map[string]float64{
		spansWaiting: float64(g.SpansWaiting),
		runsActive:   float64(g.RunsActive), runsQueued: float64(g.RunsQueued), agentsResting: float64(g.AgentsResting), mailboxMessages: float64(g.MailboxMessages),
		logsWritable: oneIf(g.LogsWritable), nodeReady: oneIf(g.Ready), budgetLimit: float64(limit), budgetReserved: float64(reserved),
	} {
		to <- prometheus.MustNewConstMetric(gaugeDescs[name], prometheus.GaugeValue, v)
	}
	for _, counter := range counterHelp {
		to <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, float64(counter.read(g)))
	}
	for name, n := range c.actors() {
		to <- prometheus.MustNewConstMetric(agentsActiveDesc, prometheus.GaugeValue, float64(n), name)
	}
	to <- prometheus.MustNewConstMetric(c.build, prometheus.GaugeValue, 1)
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
