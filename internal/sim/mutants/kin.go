package main

const (
	kinGo      = "agent/kin.go"
	superKinGo = "supervisor/kin.go"
)

// ofKin are the rules between the agents of a run: children in the background,
// and messages.
var ofKin = []Mutant{
	{"background-result-lost", "H1: a child in the background reports to its parent", []Edit{
		{membersGo, "			fx = append(fx, Tell{To: m.Parent, Fact: report(m)})", "			if !m.Background {\n				fx = append(fx, Tell{To: m.Parent, Fact: report(m)})\n			}"}}},
	{"background-result-unread", "H1: what it reports is read", []Edit{
		{kinGo, "	s.Mail = append(slices.Clip(s.Mail), f)\n", "	if f.Call == \"\" {\n		s.Mail = append(slices.Clip(s.Mail), f)\n	}\n"}}},
	{"background-child-outlives-its-parent", "B5: children in the background end with their parent", []Edit{
		{superGo, "		if member.Done {\n", "		if member.Done || member.Background {\n"}}},
	{"ends-before-its-children", "H1: who says it is done waits for its children", []Edit{
		{stopGo, "	if s.lingers() {\n		return linger(s)\n	}\n", ""}, {stopGo, " || s.lingers()) && s.Cancel == nil", ") && s.Cancel == nil"}}},
	{"idle-not-woken", "H1: what children bring wakes who waits for them", []Edit{
		{kinGo, "	s.Mail = append(slices.Clip(s.Mail), f)\n	return s.stirred()", "	s.Mail = append(slices.Clip(s.Mail), f)\n	return s, nil"}}},
	{"idle-beyond-its-time", "G6: who waits for children waits within its limits", []Edit{
		{timerGo, "		return s.stirred()\n", ""}}},
	{"idle-takes-a-retry's-timer", "P1: a new life waits for the same", []Edit{
		{resumeGo, "		if s.Query.Query == \"\" && !s.Idle {", "		if s.Query.Query == \"\" {"}}},
	{"leaves-in-silence", "H1: an end says whom it takes with it", []Edit{
		{turnGo, "	if left := s.leaving(); left != \"\" {", "	if left := s.leaving(); left == \"?\" {"}}},
	{"refused-child-is-waited-for", "H1: a delegation that begins nothing is not waited for", []Edit{
		{dispatchGo, "	if f.Live && c.delegate() {", "	if c.delegate() {"}}},
	{"message-applied-twice", "P6: a message is read once", []Edit{
		{lifeGo, "!damaged && !fresh && !halts", "!damaged && item.Kind != \"messaged\" && !fresh && !halts"}}},
	{"message-sent-again-after-a-crash", "H3: the supervisor has the message already", []Edit{
		{kinGo, "func (c Call) remote() bool { return c.delegate() || c.Sends }", "func (c Call) remote() bool { return c.delegate() }"}}},
	{"message-to-the-dead", "P14: a message to one that has ended is not sent", []Edit{
		{superKinGo, "	case ok && found.Done:\n", "	case ok && found.Done && found.ID == \"\":\n"}}},
	{"message-unread-at-the-end", "H3: nobody ends with a message unread", []Edit{
		{stopGo, " || s.lingers()) && s.Cancel == nil", ") && s.Cancel == nil"}}},
	{"message-after-the-cancel", "B5: after the cancel nothing is sent", []Edit{
		{superKinGo, "	case s.Cancel != nil || s.Phase != Live || m.Stopping:\n", "	case s.Phase == Over:\n"}}},
	{"messages-unlimited", "H3: messages of a run are limited", []Edit{
		{superKinGo, "	case s.Messages >= limit:", "	case s.Messages >= limit+1<<20:"}}},
	{"message-passes-for-a-person's", "T15: the word of an agent is quoted", []Edit{
		{kinGo, "		\"> \" + quote.Replace(m.Text)", "		\"> \" + m.Text"}}},
	{"message-not-answered", "B2: who sends a message is told what became of it", []Edit{
		{superKinGo, "	if why != \"\" {\n		return s, answer(true, \"not sent: %s\", why)\n	}", "	if why != \"\" {\n		return s, nil\n	}"}}},
}
