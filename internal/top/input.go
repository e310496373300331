package top

import (
	"encoding/json"
	"time"

	"github.com/troupe-run/troupe/client"
)

// Input is an input of Model.Update: Key, Pasted, Resized, Ticked, EventsRead or Fetched.
type Input interface{ isInput() }

// Key is a key that was pressed. Name is as in "a", "A", "enter", "esc", "up", "pgdown",
// "ctrl+c"; Text is what it types.
type Key struct {
	Name, Text string
	At         time.Time
}

// Pasted is text that was pasted.
type Pasted struct{ Text string }

// Resized is the size of the terminal.
type Resized struct{ Width, Height int }

// Ticked says what time it is, about once a second.
type Ticked struct{ At time.Time }

// EventsRead are the next events of the run that is followed.
type EventsRead struct {
	Run    string
	Events []client.Event
}

// Fetched is the answer to an effect.
type Fetched struct {
	Effect Effect
	// Data is a []client.RunInfo for FetchRuns, a client.RunInfo for FetchRun and FetchBudget, a []client.Question, a
	// []client.NodeInfo, a json.RawMessage for FetchTranscript, an EntriesPage, a Compared, a Begun, or a text about a sent
	// request; nil: nothing more.
	Data any
	// Problem is why the effect failed and what to do; "" if it succeeded. Lost says that no node answered.
	Problem string
	Lost    bool
	At      time.Time
}

func (Key) isInput()        {}
func (Pasted) isInput()     {}
func (Resized) isInput()    {}
func (Ticked) isInput()     {}
func (EventsRead) isInput() {}
func (Fetched) isInput()    {}

// Effect is a request of the screen that its caller carries out. A Fetched answers each but Quit.
type Effect interface{ isEffect() }

// Effects that read from a node.
type (
	// FetchRuns asks for the newest runs, Limit at most.
	FetchRuns struct{ Limit int }
	// FetchRun asks for the state of one run.
	FetchRun struct{ Run string }
	// FetchQuestions asks for the open questions of all runs.
	FetchQuestions struct{}
	// FetchNodes asks for the nodes.
	FetchNodes struct{}
	// FetchTranscript asks for the messages of one agent.
	FetchTranscript struct{ Run, Agent string }
	// FetchEntries asks for the entries of the log of an agent after one, and for the logs of the run. EntriesMax are wanted.
	FetchEntries struct {
		Run, Agent string
		After      uint64
	}
	// FetchComparison asks for the comparison of two runs, each named by its id, the beginning of it, or last. A is the run that
	// B is a fork of, if it is "".
	FetchComparison struct{ A, B string }
	// FetchBudget asks for a run with its budget.
	FetchBudget struct{ Run string }
)

// Effects that follow a run, change something, or end the program.
type (
	// Follow streams the events of this run, from the last one seen, and stops following any other run. Its Fetched comes
	// when the run has ended, or no node answers.
	Follow struct{ Run string }
	// SendAnswer answers a question.
	SendAnswer struct{ Request client.AnswerRequest }
	// SendCancel stops a run, or an agent.
	SendCancel struct{ Request client.CancelRequest }
	// SendBudget changes limits.
	SendBudget struct{ Request client.BudgetRequest }
	// SendMessage sends a message to an agent.
	SendMessage struct{ Request client.SteerRequest }
	// StartRun begins a run with what a person typed; "": what the command start does without the flag. With the same ID it
	// begins one run at most.
	StartRun struct {
		ID, Prompt, Agent, Agents, Dir, Model, MaxTokens, MaxUSD, MaxTurns, MaxCalls string
	}
	// ForkRun begins a run as another one was after a turn of an agent. Dir is the copy of the directory to make; "": one beside
	// that of the run.
	ForkRun struct {
		ID, Run, Agent                                string
		Turn                                          int
		Prompt, Dir, Agents, Model, MaxTokens, MaxUSD string
	}
	// Quit ends the program.
	Quit struct{}
)

func (FetchRuns) isEffect()       {}
func (FetchRun) isEffect()        {}
func (FetchQuestions) isEffect()  {}
func (FetchNodes) isEffect()      {}
func (FetchTranscript) isEffect() {}
func (FetchBudget) isEffect()     {}
func (FetchEntries) isEffect()    {}
func (FetchComparison) isEffect() {}
func (StartRun) isEffect()        {}
func (ForkRun) isEffect()         {}
func (Follow) isEffect()          {}
func (SendAnswer) isEffect()      {}
func (SendCancel) isEffect()      {}
func (SendBudget) isEffect()      {}
func (SendMessage) isEffect()     {}
func (Quit) isEffect()            {}

// decode reads a reply whose form the node decides: what does not fit stays zero.
func decode[T any](raw json.RawMessage) (data T, err error) {
	err = json.Unmarshal(raw, &data)
	return data, err
}
