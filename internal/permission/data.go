package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// Data is what a tool does with data. The operator states it for a tool, or troupe does for its own tools; never the
// program that the tool comes from.
type Data struct {
	Outside bool // its results are text from outside
	Private bool // it reads private data
	Sends   bool // it sends data out
}

// Words of model.ToolSpec.Data.
const (
	dataOutside = "outside"
	dataPrivate = "private"
	dataSends   = "sends"
	dataNone    = "none"
)

// DataUsage says what ParseData reads.
const DataUsage = "a list of outside, private and sends, or none: what the tool does with data"

// ParseData reads model.ToolSpec.Data: words with commas, or none. It returns them in one order.
func ParseData(text string) (string, error) {
	var d Data
	for _, word := range strings.Split(text, ",") {
		switch strings.TrimSpace(word) {
		case dataOutside:
			d.Outside = true
		case dataPrivate:
			d.Private = true
		case dataSends:
			d.Sends = true
		case dataNone:
			if strings.TrimSpace(text) != dataNone {
				return "", fmt.Errorf("%.80q has none beside other words; write %s", text, DataUsage)
			}
		default:
			return "", fmt.Errorf("%.80q is not %s", text, DataUsage)
		}
	}
	return d.String(), nil
}

// String is the form that ParseData returns.
func (d Data) String() string {
	var words []string
	for _, w := range []struct {
		has  bool
		word string
	}{{d.Outside, dataOutside}, {d.Private, dataPrivate}, {d.Sends, dataSends}} {
		if w.has {
			words = append(words, w.word)
		}
	}
	if words == nil {
		return dataNone
	}
	return strings.Join(words, ",")
}

// JoinData returns what either of two texts of ParseData says.
func JoinData(a, b string) string {
	switch {
	case a == dataNone:
		return b
	case b == dataNone:
		return a
	}
	joined, err := ParseData(a + "," + b)
	if err != nil {
		panic("permission: stated data: " + err.Error()) // both were parsed
	}
	return joined
}

// Tools that troupe defines, by what they do with data. The rest are tools of MCP servers, commands of agent files and
// functions of the program.
var (
	privateTools = slices.Concat(ReadTools, []string{"memory_read"})
	plainTools   = slices.Concat(loopTools, WriteTools, []string{"memory_write", "memory_delete", skillTool})
)

// DataOf says what a tool does with data: as its spec states or, if it states nothing, by its kind. Commands of agent
// files and functions of the program may read and send all; what they return is the user's own, as what a shell
// command prints (Permissions.TaintFiles says otherwise).
func DataOf(s model.ToolSpec, isCommand, taintFiles bool) Data {
	if s.Data != "" {
		words := strings.Split(s.Data, ",")
		d := Data{Outside: slices.Contains(words, dataOutside), Private: slices.Contains(words, dataPrivate), Sends: slices.Contains(words, dataSends)}
		if taintFiles { // no statement takes it back: that of a directory may only add words
			s.Data = ""
			d.Outside = d.Outside || DataOf(s, isCommand, true).Outside && !DataOf(s, isCommand, false).Outside
		}
		return d
	}
	switch {
	case isCommand:
	case s.Name == webTool:
		return Data{Outside: true, Sends: true}
	case slices.Contains(privateTools, s.Name):
		return Data{Outside: taintFiles && s.Name != "memory_read", Private: true}
	case s.Name == skillTool:
		return Data{Outside: taintFiles}
	case slices.Contains(plainTools, s.Name):
		return Data{}
	case strings.HasPrefix(s.Name, toolname.MCPPrefix):
		return Data{Outside: true, Private: true, Sends: true}
	}
	return Data{Outside: taintFiles, Private: true, Sends: true}
}

// dataOfCall is DataOf for one call: a delegation to an agent of another program leaves the machine.
func dataOfCall(c Call, d Data) Data {
	if callsForeign(c) {
		return Data{Outside: true, Sends: true}
	}
	return d
}
