package verify

// The bodies of facts, as far as a rule needs them. The keys are those of docs/protocol.md and are in logs
// for ever.

// Amount is an amount of the budget.
type Amount struct {
	Tokens int64 `msgpack:"t" json:"tokens"`
	Nano   int64 `msgpack:"n" json:"nano_usd"` // of a dollar, times 10⁹
	Calls  int64 `msgpack:"c" json:"tool_calls"`
}

// priceBody is what a token costs.
type priceBody struct {
	rateBody
	Known   bool     `msgpack:"k"`
	Allowed bool     `msgpack:"a"` // a person has allowed the model although its price is not known
	Long    tierBody `msgpack:"l"`
	Longest tierBody `msgpack:"m"`
}

// rateBody is in billionths of a dollar.
type rateBody struct {
	Input         int64 `msgpack:"i"`
	Output        int64 `msgpack:"o"`
	CacheRead     int64 `msgpack:"r"`
	CacheCreation int64 `msgpack:"w"`
}

// tierBody is the price of a call whose prompt has more than Above tokens.
type tierBody struct {
	Above int64 `msgpack:"a"`
	rateBody
}

type modelBody struct {
	Price priceBody `msgpack:"p"`
}

type modelSetBody struct {
	Model     modelBody  `msgpack:"m"`
	Summaries *modelBody `msgpack:"s"`
}

// originBody is the rule of the policy that decided.
type originBody struct {
	Version int    `msgpack:"v"`
	Rule    string `msgpack:"r"`
}

type claimBody struct {
	Damaged string `msgpack:"d"`
}

type callBody struct { // started, returned
	Call    string `msgpack:"c"`
	Attempt int    `msgpack:"a"`
	Text    string `msgpack:"t"`
	Killed  bool   `msgpack:"k"`
}

type usageBody struct {
	Input         int64 `msgpack:"i"`
	Output        int64 `msgpack:"o"`
	CacheRead     int64 `msgpack:"r"`
	CacheCreation int64 `msgpack:"w"`
}

func (u usageBody) total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheCreation }

type answerBody struct { // replied, failed
	Reservation int  `msgpack:"l"`
	Unbilled    bool `msgpack:"u"`
	Reply       struct {
		Message struct {
			Calls []struct {
				Name string `msgpack:"n"`
			} `msgpack:"c"`
		} `msgpack:"m"`
		Usage usageBody `msgpack:"u"`
		Known bool      `msgpack:"k"`
	} `msgpack:"r"`
}

type failureBody struct { // failed; the rest is answerBody
	Class  string `msgpack:"c"`
	Detail string `msgpack:"d"`
}

type decisionBody struct { // answered
	Query    string `msgpack:"q"`
	Decision string `msgpack:"d"`
	Digest   string `msgpack:"g"`
	Always   string `msgpack:"a"`
	By       string `msgpack:"b"`
}

type parkBody struct {
	Query    string `msgpack:"q"`
	Question string `msgpack:"t"`
	Reason   string `msgpack:"r"`
	Call     string `msgpack:"c"`
	Digest   string `msgpack:"g"`
	Due      int64  `msgpack:"e"`
	// Approvals is how many people must approve.
	Approvals int `msgpack:"n"`
}

type hookedBody struct {
	ID      string `msgpack:"i"`
	Point   string `msgpack:"p"`
	Answers []struct {
		Hook     string `msgpack:"h"`
		Decision string `msgpack:"d"`
		Text     string `msgpack:"t"`
	} `msgpack:"a"`
}

type wokeBody struct {
	Timer string `msgpack:"t"`
}

type outcome struct {
	Reason string `msgpack:"r"`
	Detail string `msgpack:"d"`
}

type finishBody struct {
	Outcome outcome `msgpack:"o"`
	Turns   int     `msgpack:"t"`
	Calls   int     `msgpack:"c"`
	Foreign int     `msgpack:"fo"` // calls of agents of other programs
	Worked  int64   `msgpack:"w"`  // milliseconds
}

type closedBody struct {
	Finish *finishBody `msgpack:"f"`
}

type canceledBody struct {
	Why string `msgpack:"w"`
	Of  string `msgpack:"o"`
	As  string `msgpack:"a"`
}

type reportBody struct { // back
	Damaged string   `msgpack:"d"`
	Ended   *outcome `msgpack:"o"`
}

type reserveBody struct {
	Reservation int `msgpack:"l"`
	Turn        int `msgpack:"t"`
	Request     struct {
		Input   int64     `msgpack:"i"`
		Output  int64     `msgpack:"o"`
		Closing int64     `msgpack:"c"`
		Calls   int64     `msgpack:"n"`
		Price   priceBody `msgpack:"p"`
	} `msgpack:"a"`
}

type grantedBody struct { // granted, denied
	Reservation int         `msgpack:"l"`
	Output      int64       `msgpack:"o"`
	Calls       int64       `msgpack:"c"`
	Closing     bool        `msgpack:"f"`
	Why         string      `msgpack:"w"`
	Detail      string      `msgpack:"d"`
	By          *originBody `msgpack:"by"`
	Allowance   *struct {
		Room Amount `msgpack:"r"`
	} `msgpack:"h"`
}

type settleBody struct {
	Reservation int       `msgpack:"l"`
	Used        Amount    `msgpack:"u"`
	Usage       usageBody `msgpack:"g"`
	Lost        bool      `msgpack:"x"`
	Turn        int       `msgpack:"t"`
	Under       int       `msgpack:"w"`
	Taken       Amount    `msgpack:"k"`
}

type delegateBody struct {
	Child    string `msgpack:"i"`
	HandsOff bool   `msgpack:"ho"`
}

type returnBody struct { // return_allowance
	Grant       int    `msgpack:"g"`
	Reservation int    `msgpack:"l"`
	Open        bool   `msgpack:"o"`
	Taken       Amount `msgpack:"k"`
}

type openedBody struct {
	Fork        string           `msgpack:"fo"`
	Definitions []definitionBody `msgpack:"d"`
	Model       modelBody        `msgpack:"m"`
	Limits      Amount           `msgpack:"l"`
	Tools       []toolBody       `msgpack:"t"`
	Commands    []commandBody    `msgpack:"z"`
	Servers     []serverBody     `msgpack:"ms"`
	Writable    []string         `msgpack:"e"`
}

type definitionBody struct {
	Name    string   `msgpack:"n"`
	Deny    []string `msgpack:"y"`
	Foreign bool     `msgpack:"fo"` // it represents an agent of another program
	Charge  int64    `msgpack:"ch"` // for the work of that agent, in billionths of a dollar
}

// contextBody is a change of the prompt and the tools of an agent. That of a client in the log of a run names the
// agent.
type contextBody struct { // context_set
	Agent    string            `msgpack:"a"`
	Layers   []layerBody       `msgpack:"l"`
	Tools    []toolBody        `msgpack:"t"`
	Commands []commandBody     `msgpack:"z"`
	Servers  []serverBody      `msgpack:"ms"`
	Without  []string          `msgpack:"w"`
	Hashes   map[string]string `msgpack:"x"`
}

// layerBody is a part of a prompt. One without text removes that of its name and agent.
type layerBody struct {
	Name     string `msgpack:"n"`
	Text     string `msgpack:"t"`
	Priority int    `msgpack:"p"`
	Owner    string `msgpack:"o"`
	Agent    string `msgpack:"a"`
	Below    bool   `msgpack:"b"`
	Merge    bool   `msgpack:"m"`
}

type serverBody struct {
	Name   string `msgpack:"n"`
	Source string `msgpack:"s"`
	Hash   string `msgpack:"h"`
	Own    bool   `msgpack:"o"`
}

type toolBody struct {
	Name  string `msgpack:"n"`
	Class string `msgpack:"c"`
}

type commandBody struct {
	Name string `msgpack:"n"`
	Line string `msgpack:"l"`
}

type hookBody struct {
	Name    string `msgpack:"n"`
	Point   string `msgpack:"p"`
	Tools   string `msgpack:"t"`
	Command string `msgpack:"c"`
	Report  bool   `msgpack:"r"`
	Of      string `msgpack:"w"`
	Rules   string `msgpack:"u"`
}

// permissionsBody has the rules as they are in an entry: the text, where it was written, and whether it is confined,
// separated by zero bytes.
type permissionsBody struct {
	Mode             string     `msgpack:"m"`
	Allow            [][]byte   `msgpack:"a"`
	Ask              [][]byte   `msgpack:"k"`
	Deny             [][]byte   `msgpack:"d"`
	Only             [][]byte   `msgpack:"o"`
	Within           [][][]byte `msgpack:"w"`
	Confined         bool       `msgpack:"c"`
	Yes              bool       `msgpack:"y"`
	ShellForChildren bool       `msgpack:"p"`
	NoUserNotes      bool       `msgpack:"n"`
	UserEnv          bool       `msgpack:"u"`
	Approvals        int        `msgpack:"v"`
	Taint            string     `msgpack:"t"`
	TaintFiles       bool       `msgpack:"tf"`
	Narrows          bool       `msgpack:"nr"`
}

type submittedBody struct {
	Task struct {
		ID          string            `msgpack:"i"`
		Parent      string            `msgpack:"p"`
		Name        string            `msgpack:"n"` // of its definition
		Tools       []toolBody        `msgpack:"t"`
		Forbidden   []string          `msgpack:"f"`
		Commands    []commandBody     `msgpack:"z"`
		Writable    []string          `msgpack:"u"`
		Permissions []permissionsBody `msgpack:"pe"`
		AddedRules  [][]byte          `msgpack:"pg"`
		Layers      []layerBody       `msgpack:"la"` // that it inherits
		Model       modelBody         `msgpack:"m"`
		Charge      int64             `msgpack:"ch"`
		Limits      struct {
			Turns  int   `msgpack:"t"`
			Soft   int64 `msgpack:"s"`
			Hard   int64 `msgpack:"d"`
			Tokens int64 `msgpack:"k"`
			Nano   int64 `msgpack:"n"`
			Calls  int   `msgpack:"c"`
		} `msgpack:"l"`
		LoopOptions struct {
			Hooks     []hookBody  `msgpack:"h"`
			Fallbacks []modelBody `msgpack:"f"`
			Context   struct {
				Model *modelBody `msgpack:"m"`
			} `msgpack:"c"`
		} `msgpack:"a"`
	} `msgpack:"t"`
}

type steeredBody struct {
	Now bool `msgpack:"n"`
}

type allowRuleBody struct {
	Rule []byte `msgpack:"r"`
}

type proposalBody struct { // propose_stop, stop_allowed, stop_vetoed
	Proposal int         `msgpack:"p"`
	Why      string      `msgpack:"w"`
	Final    bool        `msgpack:"f"`
	By       *originBody `msgpack:"by"`
}

type limitBody struct { // limit_set
	Limits struct {
		Amount
		Depth    int `msgpack:"d"`
		Children int `msgpack:"h"`
		Agents   int `msgpack:"a"`
		Messages int `msgpack:"m"`
	} `msgpack:"l"`
	Patch  bool   `msgpack:"p"`
	Soft   int64  `msgpack:"ts"`
	Freeze bool   `msgpack:"f"`
	By     string `msgpack:"b"`
}

// namesOnlyTime reports whether the other limits, and a freeze, stay as they are.
func (b limitBody) namesOnlyTime() bool {
	l := b.Limits
	return b.Soft > 0 && b.Patch && !b.Freeze &&
		l.Amount == Amount{} && l.Depth == 0 && l.Children == 0 && l.Agents == 0 && l.Messages == 0
}

type othersBody struct { // others_use
	Spent Amount `msgpack:"s"`
	Held  Amount `msgpack:"h"`
}

type givenUpBody struct {
	Agent string `msgpack:"a"`
}

const logDamaged = "log_damaged"
