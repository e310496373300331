package spec

// Taint says which text from outside an agent has read first, by itself or by what another agent told it. A nil Taint
// says that it has read none.
type Taint struct {
	Source string `msgpack:"s" json:"source"`                  // tool, memory, task
	Run    string `msgpack:"r,omitempty" json:"run,omitempty"` // if it is another run
	Agent  ID     `msgpack:"a,omitempty" json:"agent,omitempty"`
	Tool   string `msgpack:"t,omitempty" json:"tool,omitempty"`
	Call   string `msgpack:"c,omitempty" json:"call,omitempty"`
}

// Values of Permissions.Taint: what holds for calls that send data out, once an agent has read text from outside.
const (
	TaintOff  = "off"
	TaintAsk  = "ask"
	TaintDeny = "deny"
)
