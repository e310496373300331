package main

// ofPermissions lists mutants of permissions and approvals: the judge decides about each call by its own reading of the
// rules, and knows which arguments a person approved.
var ofPermissions = []Mutant{
	{"call-that-a-rule-denies-runs", "E2: what a rule denies never runs", own(Drop)},
	{"denied-by-no-rule", "E2: deny wins", own(Never)},
	{"plan-changes-something", "E2: in the mode plan only reads run", own(Never)},
	{"asks-although-nobody-may-be-asked", "E2: in the mode dontAsk nobody is asked", own(Never)},
	{"unattended-asks", "A26: where nobody can be asked, nobody is", own(Without(2, 2))},
	{"asks-below-an-unattended-agent", "E6: a child may ask nobody where its parent may not", own(Never)},
	{"declared-failure-goes-on", "K2: an agent that declares a failure ends", own(Always)},
	{"irreversible-call-asks-nobody", "E2: what cannot be undone waits for a person", own(Never)},
	{"call-to-ask-about-asks-nobody", "E3: a call that a rule asks about waits for its own approval", own(Replace(`_ = raw`))},
	{"last-permissions-decide", "E6: of the permissions of an agent and its ancestors the strictest count", own(Always)},
	{"permissions-not-inherited", "E6: the permissions of a parent bind its children", own(Never)},
	{"answer-to-other-arguments-counts", "E3: an approval is for the arguments that the person has read", own(Without(3, 3))},
	{"first-approval-is-enough", "E3: of the two people who must approve a call each has to", own(Never)},
	{"one-person-approves-twice", "E3: two approvals of one person are one", own(Replace(`return q.ApprovedBy != ""`))},
	{"unnamed-approval-counts", "E3: nobody knows whether an approval without a name is that of another person", own(Never)},
	{"question-expires-early", "E3: a question expires when its time is over", own(Never)},
	{"tainted-call-asks-nobody", "E2: a call that sends data out waits for its own approval once its agent has read text from outside", own(Always)},
	{"denied-by-no-taint", "E2: with taint deny such a call never runs", own(Never)},
	{"result-taints-nobody", "E2: the result of a tool that brings text from outside taints its agent", own(Replace(`_ = t`))},
	{"message-taints-nobody", "E2: so does a message of a tainted agent", own(Replace(`s = s.appendMessage(model.Message{Role: model.User, Text: m.quotedText()})`))},
	{"task-taints-nobody", "E2: so does a task of a tainted agent", own(Replace(`s = restoreJournal(adoptContext(s))`))},
	{"child-begins-untainted", "E2: what a tainted agent delegates taints the child", own(Replace(`_ = f.Tainted`))},
	{"park-clock-never-stops", "K18: a run that works again has no clock of a parked run", own(Never)},
}
