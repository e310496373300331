package throttle

// CallOutcome is how a request was answered.
type CallOutcome string

// Outcomes. Limited and Overloaded come from the provider itself and bind every node; Failed
// is what only this node has seen. Neutral says nothing about the provider: the call was
// canceled, or never made. OverRate is no answer: the throttle itself holds a request back, because
// the requests or tokens of the minute are used up.
const (
	OK         CallOutcome = "ok"
	Limited    CallOutcome = "rate_limit"
	Overloaded CallOutcome = "overload"
	Failed     CallOutcome = "network"
	Neutral    CallOutcome = "neutral"
	OverRate   CallOutcome = "requests_or_tokens_per_minute"
)

// Events.
type (
	// CallRequested says that a caller wants to make a call. Who names the caller, which asks for one
	// call at a time; Call names the request. If Reserved is set, the caller has a reservation, and
	// waits for Limits.QueueMax at most; otherwise the caller waits for its turn and then asks
	// again with Reserved set.
	CallRequested struct {
		At        int64
		Who, Call string
		Run       string
		Priority  Priority // of the run
		Tokens    int64    // an estimate; corrected by the actual count
		Reserved  bool
	}
	// CallerLeft says that a caller has withdrawn: a request of it that has not begun never will.
	CallerLeft struct {
		At  int64
		Who string
	}
	// ReplyBegan says that the provider has begun to answer a request.
	ReplyBegan struct {
		At   int64
		Call string
	}
	// CallAnswered ends a request. AfterMS is the pause that the provider asked for, Used the
	// tokens that it counted, Report the rates that it reported; each is 0 if the provider does
	// not report it.
	CallAnswered struct {
		At      int64
		Call    string
		Outcome CallOutcome
		AfterMS int64
		Used    int64
		Report  RateReport
	}
	// NoticeReceived is a notice that the provider gave another node.
	NoticeReceived struct {
		At int64
		Notice
	}
	// RatesSet sets the requests and tokens a minute that the settings of this node allow.
	RatesSet struct {
		At int64
		Rates
	}
	// NodeCountSet sets how many nodes share the limits of the key.
	NodeCountSet struct {
		At    int64
		Nodes int
	}
	// TimePassed says that time has passed.
	TimePassed struct{ At int64 }
)

// Event is one of the events above.
//
//sumtype:decl
type Event interface{ eventTime() int64 }

func (e CallRequested) eventTime() int64  { return e.At }
func (e CallerLeft) eventTime() int64     { return e.At }
func (e ReplyBegan) eventTime() int64     { return e.At }
func (e CallAnswered) eventTime() int64   { return e.At }
func (e NoticeReceived) eventTime() int64 { return e.At }
func (e RatesSet) eventTime() int64       { return e.At }
func (e NodeCountSet) eventTime() int64   { return e.At }
func (e TimePassed) eventTime() int64     { return e.At }

// Effects.
type (
	// AdmitCaller lets a request begin if the caller asked with Reserved set; a caller that waited
	// without a reservation may now obtain one.
	AdmitCaller struct {
		Who, Call string
		Reserved  bool
	}
	// RejectCaller rejects a caller that asked with Reserved set: the throttle does not open in
	// time. The caller may try again after AfterMS.
	RejectCaller struct {
		Who, Call string
		AfterMS   int64
		Why       CallOutcome
	}
	// PublishNotice is a notice to send to the other nodes.
	PublishNotice struct{ Notice }
)

// Effect is one of the effects above.
//
//sumtype:decl
type Effect interface{ effect() }

func (AdmitCaller) effect()   {}
func (RejectCaller) effect()  {}
func (PublishNotice) effect() {}

// Notice is what a node tells the other nodes. The pause is what the provider itself asked for; it
// applies for PauseMS from the moment it was sent. A pause of 0 with the reason OK ends a closure
// caused by overload, and a notice without a reason says nothing about closures.
type Notice struct {
	PauseMS int64       `json:"pause_ms,omitempty"`
	Why     CallOutcome `json:"why,omitempty"`
	Rates               // that the provider has reported
	// Settings are those of the node that sends the notice.
	Settings Rates `json:"settings,omitzero"`
}
