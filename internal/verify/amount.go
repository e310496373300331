package verify

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Tokens + b.Tokens, a.Nano + b.Nano, a.Calls + b.Calls}
}
func (a Amount) minus(b Amount) Amount {
	return Amount{a.Tokens - b.Tokens, a.Nano - b.Nano, a.Calls - b.Calls}
}

// over is what exceeds another amount.
func (a Amount) over(b Amount) Amount {
	return Amount{max(0, a.Tokens-b.Tokens), max(0, a.Nano-b.Nano), max(0, a.Calls-b.Calls)}
}

// beyond is what exceeds a limit.
func (a Amount) beyond(limit Amount) Amount {
	over := a.over(limit)
	if limit.Tokens == 0 {
		over.Tokens = 0
	}
	if limit.Nano == 0 {
		over.Nano = 0
	}
	if limit.Calls == 0 {
		over.Calls = 0
	}
	return over
}

// ofKinds is the part of an amount whose kinds occur in another one: tokens, money, calls.
func (a Amount) ofKinds(b Amount) Amount {
	if b.Tokens == 0 {
		a.Tokens = 0
	}
	if b.Nano == 0 {
		a.Nano = 0
	}
	if b.Calls == 0 {
		a.Calls = 0
	}
	return a
}
