package verify

// The bodies of facts, as far as a rule needs them. The keys are those of docs/protocol.md and are in logs
// for ever.

type amount struct {
	Tokens int64 `msgpack:"t"`
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

type repliedBody struct {
	Reservation int `msgpack:"l"`
	Reply       struct {
		Message struct {
			Calls []struct {
				Name string `msgpack:"n"`
			} `msgpack:"c"`
		} `msgpack:"m"`
	} `msgpack:"r"`
}

type outcome struct {
	Reason string `msgpack:"r"`
	Detail string `msgpack:"d"`
}

type finishBody struct {
	Outcome outcome `msgpack:"o"`
	Turns   int     `msgpack:"t"`
	Calls   int     `msgpack:"c"`
}

type closedBody struct {
	Finish *finishBody `msgpack:"f"`
}

type canceledBody struct {
	Why string `msgpack:"w"`
	As  string `msgpack:"a"`
}

type reportBody struct { // back
	Damaged string `msgpack:"d"`
}

type reserveBody struct {
	Reservation int `msgpack:"l"`
	Request     struct {
		Input  int64 `msgpack:"i"`
		Output int64 `msgpack:"o"`
	} `msgpack:"a"`
}

type grantedBody struct {
	Reservation int   `msgpack:"l"`
	Output      int64 `msgpack:"o"`
	Allowance   *struct {
		Room amount `msgpack:"r"`
	} `msgpack:"h"`
}

type settleBody struct {
	Reservation int    `msgpack:"l"`
	Used        amount `msgpack:"u"`
	Lost        bool   `msgpack:"x"`
	Under       int    `msgpack:"w"`
	Taken       amount `msgpack:"k"`
}

type returnBody struct { // return_allowance
	Reservation int    `msgpack:"l"`
	Open        bool   `msgpack:"o"`
	Taken       amount `msgpack:"k"`
}

type openedBody struct {
	Limits struct {
		Tokens int64 `msgpack:"t"`
	} `msgpack:"l"`
}

type toolBody struct {
	Name  string `msgpack:"n"`
	Class string `msgpack:"c"`
}

type submittedBody struct {
	Task struct {
		ID        string     `msgpack:"i"`
		Parent    string     `msgpack:"p"`
		Tools     []toolBody `msgpack:"t"`
		Forbidden []string   `msgpack:"f"`
	} `msgpack:"t"`
}

type proposalBody struct {
	Proposal int `msgpack:"p"`
}

const logDamaged = "log_damaged"
