package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

// Names of the demo's parts.
const (
	demoAgent     = "manager"
	demoTool      = "ship_order"
	demoModel     = "demo/scripted"
	demoOrders    = 9
	demoBudgetUSD = 0.5
)

// demoPrices are the prices of the scripted model, in dollars per million tokens.
const demoPrices = `{"demo": {"models": {"scripted": {"cost": {"input": 3, "output": 15}, "limit": {"context": 200000, "output": 1000}}}}}
`

// demoScript is what the model replies. The model takes PACE for each reply.
const demoScript = `
agents:
  manager:
    - delay: PACE
      calls:
        - {name: delegate, args: {agent: ann, task: "Ship orders 1, 2 and 3."}}
        - {name: delegate, args: {agent: ben, task: "Ship orders 4, 5 and 6."}}
        - {name: delegate, args: {agent: cleo, task: "Ship orders 7, 8 and 9."}}
    - {delay: PACE, text: "All nine orders are shipped."}
  ann:
    - {delay: PACE, calls: [{name: ship_order, args: {number: 1}}]}
    - {delay: PACE, calls: [{name: ship_order, args: {number: 2}}]}
    - {delay: PACE, calls: [{name: ship_order, args: {number: 3}}]}
    - {text: "Shipped."}
  ben:
    - {delay: PACE, calls: [{name: ship_order, args: {number: 4}}]}
    - {delay: PACE, calls: [{name: ship_order, args: {number: 5}}]}
    - {delay: PACE, calls: [{name: ship_order, args: {number: 6}}]}
    - {text: "Shipped."}
  cleo:
    - {delay: PACE, calls: [{name: ship_order, args: {number: 7}}]}
    - {delay: PACE, calls: [{name: ship_order, args: {number: 8}}]}
    - {delay: PACE, calls: [{name: ship_order, args: {number: 9}}]}
    - {text: "Shipped."}
`

// demoContributions returns the agents, the tool and the model of the demo. Ledgers are in dir.
func demoContributions(dir string, pace time.Duration) (node.Contributions, error) {
	s, err := script.Parse([]byte(strings.ReplaceAll(demoScript, "PACE", pace.String())))
	if err != nil {
		return node.Contributions{}, fmt.Errorf("script: %w", err)
	}
	ship := tool.Func(demoTool, "Ship an order.", model.Effect, func(ctx context.Context, o struct {
		Number int `json:"number"`
	}) (string, error) {
		return "shipped", shipOrder(filepath.Join(dir, ledgerName(tool.CallOf(ctx).Run)), o.Number)
	})
	agents := []agentfile.Definition{{Name: demoAgent, Description: "Distributes the orders.", Prompt: "Delegate the orders to your clerks.", Delegates: []string{"ann", "ben", "cleo"}}}
	for _, name := range agents[0].Delegates {
		agents = append(agents, agentfile.Definition{Name: name, Description: "Ships orders.", Prompt: "Ship each order once.", Tools: []agentfile.ToolRef{{Name: demoTool}}})
	}
	return node.Contributions{Tools: []tool.Tool{ship}, Agents: agents, Models: map[string]model.Client{demoModel: s.Client("")}}, nil
}

// ledgerName is the ledger file of a run of the demo.
func ledgerName(run string) string { return "ledger-" + run + ".txt" }

// shipOrder is the side effect of the demo: a line in the ledger.
func shipOrder(ledger string, number int) (err error) {
	f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.WriteString(f, fmt.Sprintf("order %d shipped by process %d\n", number, os.Getpid())); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return f.Sync()
}

// shippedOrders is what a ledger says.
type shippedOrders struct {
	times     map[int]int // by order
	processes []int       // in the order of their first line
	lines     map[int]int // by process
}

// ledgerBytesMax bounds a ledger; one of a demo that works has less than 1 KB.
const ledgerBytesMax = 1 << 20

// readLedger reads a ledger file.
func readLedger(file string) (shippedOrders, error) {
	l := shippedOrders{times: map[int]int{}, lines: map[int]int{}}
	data, err := safefile.Read(file, ledgerBytesMax)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil // no order was shipped
	}
	if err != nil {
		return l, fmt.Errorf("ledger: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		var order, process int
		if _, err := fmt.Sscanf(line, "order %d shipped by process %d\n", &order, &process); err != nil {
			return l, fmt.Errorf("ledger: line %q: %w", line, err)
		}
		l.times[order]++
		if l.lines[process]++; l.lines[process] == 1 {
			l.processes = append(l.processes, process)
		}
	}
	return l, nil
}

// summary is one line about the ledger.
func (l shippedOrders) summary() string {
	var by []string
	for _, p := range l.processes {
		by = append(by, fmt.Sprintf("%d by process %d", l.lines[p], p))
	}
	text := fmt.Sprintf("%d of %d orders shipped", len(l.times), demoOrders)
	if l.check() == nil {
		text += ", each once"
	}
	if len(by) > 0 {
		text += ": " + strings.Join(by, ", ")
	}
	return text
}

// errLedger: the ledger of a demo does not have each order once.
var errLedger = errors.New("the ledger does not have each order once")

// check fails unless each order was shipped once.
func (l shippedOrders) check() error {
	for order := 1; order <= demoOrders; order++ {
		if n := l.times[order]; n != 1 {
			return fmt.Errorf("%w: order %d is there %d times", errLedger, order, n)
		}
	}
	return nil
}
