package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
)

//behaviour:shows J3
func Example() {
	main()
	// Output:
	// evidence is sufficient
	//   completed: Five days late, which is more than three: I recommend the refund. draft 1 is filed.
	//   ran: read_order, read_delivery_status, search_refund_policy, draft_refund_recommendation; refunds issued: 0
	// the customer is asked
	//   completed: Not a matter of lateness: the customer says: the box was empty.
	//   ran: read_order, search_refund_policy, ask_customer_clarifying_question; refunds issued: 0
	// evidence is missing
	//   evidence_missing: missing: a successful result of read_order; a successful result of search_refund_policy
	//   ran: ; refunds issued: 0
	// a forbidden action
	//   completed: I may not issue the refund. The evidence is there: more than three days late: refund in full.
	//   ran: read_order, search_refund_policy; refunds issued: 0
	// forbidden again and again
	//   refused: it may not use update_policy, and proposed such tools in 3 replies in a row
	//   ran: ; refunds issued: 0
	// policy blocks it
	//   policy_blocked: hook compliance: A person turns customers down.
	//   ran: read_order; refunds issued: 0
	// a person is needed
	//   needs_human (it waits): read_delivery_status failed 2 times in a row on {"order":"O-104"}: upstream timeout. How shall it go on? (deny ends it here)
	//   ran: read_delivery_status, read_delivery_status; refunds issued: 0
	// no end in sight
	//   max_turns: Not sure yet.
	//   ran: search_refund_policy, read_order, search_refund_policy, read_order, search_refund_policy, read_order, search_refund_policy, read_order; refunds issued: 0
}

// TestLogs: the logs of each scenario replay to its end and keep the rules.
func TestLogs(t *testing.T) {
	for _, s := range scenarios {
		dir := t.TempDir()
		if err := s.investigate(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		judged.Dir(t, dir, 1)
	}
}
