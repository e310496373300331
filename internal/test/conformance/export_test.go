package conformance

// Rule and Refusal tell the tests which rule a request breaks.
type (
	Rule    = rule
	Refusal = refusal
)

// Rules lists all rules.
func Rules() []Rule {
	return []Rule{Encoding, Shape, Limit, System, First, Alternation, Last, Empty, Identity, Arguments, Pairing, Order,
		Signature, Declared, Tools, Choice, Media}
}
