package keeper

// Numbers without package strconv, which is initialized too late.

// formatNumber returns a number in decimal.
func formatNumber(n int64) string {
	sign, rest := "", uint64(n)
	if n < 0 {
		sign, rest = "-", -rest
	}
	var digits [20]byte
	at := len(digits)
	for {
		at--
		digits[at] = byte('0' + rest%10)
		if rest /= 10; rest == 0 {
			return sign + string(digits[at:])
		}
	}
}

// nextNumber returns the number that a text begins with, and what follows the space or newline behind it. ok is false
// if the text begins with no number of at most 18 digits, or if another character than a space or a newline follows.
func nextNumber(text string) (n int64, rest string, ok bool) {
	at, sign := 0, int64(1)
	if text != "" && text[0] == '-' {
		at, sign = 1, -1
	}
	first := at
	for ; at < len(text) && text[at] >= '0' && text[at] <= '9'; at++ {
		n = n*10 + int64(text[at]-'0')
	}
	if at == first || at-first > 18 {
		return 0, text, false
	}
	switch {
	case at == len(text):
		return sign * n, "", true
	case text[at] == ' ' || text[at] == '\n':
		return sign * n, text[at+1:], true
	}
	return 0, text, false
}

// parseNumber returns a text that is one number.
func parseNumber(text string) (int, bool) {
	n, rest, ok := nextNumber(text)
	return int(n), ok && rest == ""
}
