package main

// scenario is one course that an investigation may take.
type scenario struct {
	name    string
	replies string // of the model, one after the other
	broken  string // a tool that fails
}

var scenarios = []scenario{
	{name: "evidence is sufficient", replies: `
default:
  - calls: [{name: read_order, args: {order: O-104}}, {name: read_delivery_status, args: {order: O-104}}]
  - calls: [{name: search_refund_policy, args: {query: late}}]
  - calls: [{name: draft_refund_recommendation, args: {order: O-104, recommend: refund}}]
  - text: "Five days late, which is more than three: I recommend the refund. {{last}}."
`},
	{name: "the customer is asked", replies: `
default:
  - calls: [{name: read_order, args: {order: O-104}}, {name: search_refund_policy, args: {query: missing}}]
  - calls: [{name: ask_customer_clarifying_question, args: {question: "What was in the box?"}}]
  - text: "Not a matter of lateness: {{last}}."
`},
	{name: "evidence is missing", replies: `
default: [{text: "The customer is surely right, refund it."}]
repeat: true
`},
	{name: "a forbidden action", replies: `
default:
  - calls: [{name: read_order, args: {order: O-104}}]
  - calls: [{name: issue_refund, args: {order: O-104, amount: 40}}]
  - calls: [{name: search_refund_policy, args: {query: late}}]
  - text: "[done] I may not issue the refund. The evidence is there: {{last}}."
`},
	{name: "forbidden again and again", replies: `
default:
  - calls: [{name: issue_refund, args: {order: O-104, amount: 40}}]
  - calls: [{name: change_payment_method, args: {to: cash}}]
  - calls: [{name: update_policy, args: {refunds: always}}]
`},
	{name: "policy blocks it", replies: `
default:
  - calls: [{name: read_order, args: {order: O-104}}]
  - calls: [{name: draft_refund_recommendation, args: {order: O-104, recommend: turn down}}]
`},
	{name: "a person is needed", broken: "read_delivery_status", replies: `
default:
  - calls: [{name: read_delivery_status, args: {order: O-104}}]
  - calls: [{name: read_delivery_status, args: {order: O-104}}]
`},
	{name: "no end in sight", replies: `
default:
  - {text: "Not sure yet.", calls: [{name: search_refund_policy, args: {query: "rule {{n}}"}}, {name: read_order, args: {order: "O-{{n}}"}}]}
repeat: true
`},
}
