package investigator

import (
	"path"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// politely is what may stand before the verb of a prompt.
const politely = `(?:please\s+|(?:can|could|will|would)\s+you\s+(?:please\s+)?|help\s+me\s+(?:to\s+)?|i\s+(?:want|need)\s+you\s+to\s+|you\s+(?:must|should)\s+)?`

// Verbs of work that changes something. The first list has words that are nothing else after "and".
const (
	changeVerbs = `convert|correct|delete|fix|implement|install|migrate|optimi[sz]e|refactor|remove|rename|repair|rewrite|translate|upgrade`
	otherVerbs  = `add|build|change|commit|compile|create|deploy|execute|format|generate|improve|make|merge|move|patch|push|replace|resolve|revert|run|solve|test|update`
	// determiner is what stands before the object of a verb, and not after a noun.
	determiner = `all|an?|any|each|every|everything|it|its|me|my|our|the|them|these|this|those|whatever|what`
)

var (
	wantsReport = lazyregexp.New(`(?i)\b(report|investigat\w*|audit|write|save)\b|\.md\b`)
	// namesReport is a prompt that asks for a file, or for something written.
	namesReport = lazyregexp.New(`(?i)\b(report|write|save)\b|\.md\b`)
	// asksForChange is a prompt that asks for work which an investigation does not do.
	asksForChange = lazyregexp.New(`(?i)^\s*` + politely + `(?:` + changeVerbs + `|` + otherVerbs + `|calculate|compare|compute|count|debug)\b`)
	asksForCode   = lazyregexp.New(`(?i)^\s*` + politely + `write\s+(?:\w+\s+){0,3}?(?:tests?|code|functions?|programs?|scripts?|class(?:es)?)\b`)
	asksForText   = lazyregexp.New(`(?i)^\s*` + politely + `write\b`)
	// laterChange finds such work behind the first verb. Its first group begins at the verb.
	laterChange = lazyregexp.New(`(?i)(?:[.,;:!?]\s+|\b(?:and|then|or)\s+)(?:also\s+|please\s+|then\s+)*((?:` + changeVerbs + `)\b|(?:` + otherVerbs + `)\s+(?:` + determiner + `)\b)`)
	// writesFindings is a text that an investigation can write.
	writesFindings = lazyregexp.New(`(?i)\b(?:down|findings?|notes|overview|reports?|results?|summary|what)\b|\.(?:md|markdown)\b`)
	// makesReport is a prompt whose first verb has a report as its object.
	makesReport = lazyregexp.New(`(?i)^\s*` + politely + `(?:(?:build|create|generate|make|run|test|write)\s+(?:\w+\s+){0,3}?(?:reports?|investigation|audit)(?:\W?\s|\W?$)|(?:create|generate|make|write)\s+(?:\w+\s+){0,4}?[\w./-]*\.md\b)`)
	reportFile  = lazyregexp.New(`(?i)\b(?:write|save|put|generate|create|make|into|as|to|in)\s+(?:(?:it|this|that|a|an|the|your|all|what|you|see|find|findings|report|results|everything|summary|file|named|called|to|into|in|as)\s+)*["'` + "`" + `]?([\w./-]*\w\.(?:md|markdown))\b`)
)

// What no investigation of a directory answers.
var (
	// fileName is the name of one file: an investigation reads none as a whole.
	fileName = lazyregexp.New(`\b[\w-]+\.[a-z][a-z0-9]{0,7}\b|\b(?:Makefile|Dockerfile)\b`)
	// noFileName has the form of a file's name and is none: an abbreviation, a library, an address.
	noFileName = lazyregexp.New(`(?i)\b(?:e\.g|i\.e|a\.k\.a|[ap]\.m|v?\d+\.x|(?:express|next|node|nuxt|three|vue)\.js)\b|https?://\S+`)
	// hostName is the name of a host, also with a path, and logFile a log, whose errors an investigation lists.
	hostName = lazyregexp.New(`(?i)\b(?:[\w-]+\.)+(?:ai|app|cloud|com|dev|edu|eu|gov|io|net|org)(?:/\S*|[^\w./]|\.?(?:\s|$))`)
	logFile  = lazyregexp.New(`(?i)[\w./-]*\w\.(?:jsonl|log|ndjson)(?:\.\d+)?(?:\.gz)?(?:[^\w./]|\.?(?:\s|$))`)
	// asksForReason is a question that needs a conclusion, a figure or a test.
	asksForReason = lazyregexp.New(`(?i)\bwhy\b|\bhow\s+(?:are|can|could|did|do|does|far|is|long|many|much|often|old|should|to|was|were|would)\b` +
		`|\b(?:ensure|make\s+sure|prove|verify|whether)\b|\b(?:check|determine|find\s+out|know|see|tell\s+me)\s+(?:if|that)\b|\bwhat\s+(?:do|did|happens|will|would)\b|\bwhat\s+(?:\S+\s+){0,4}?does\b`)
	// asksYesOrNo is a question that begins with its verb; isThere is one that a list answers.
	asksYesOrNo = lazyregexp.New(`(?i)^\s*(?:are|did|does|do\s+(?:all|any|i|the|these|they|we|you)|has|have|is|was|were|will)\s+\S`)
	isThere     = lazyregexp.New(`(?i)^\s*(?:are|is)\s+there\b`)
	// onePart is a part of the source, or the one fault that is sought.
	onePart = lazyregexp.New(`(?i)\b(?:an?|one|that|the|this|which)\s+(?:[\w'-]+\s+){0,2}?(?:algorithm|bug|cause|class|culprit|function|leak|method|reason|regression|variable)\b`)
	// understands is a verb whose object must be the directory: an investigation explains no other thing.
	understands = lazyregexp.New(`(?i)\b(?:describe|explain|outline|summari[sz]e|summary\s+of|teach|understand)\b`)
	// wholePlace is the directory, its logs or what was found in it.
	wholePlace = lazyregexp.New(`(?i)\b(?:code\s?base|director(?:y|ies)|errors|everything|files|findings|folders?|here|history|logs?|problems|projects?|repo(?:s|sitory|sitories)?|results|tree|what\s+you\s+(?:find|see)|workspace)\b|\bthis\W*$`)
)

var (
	// bareLook is a prompt, or a clause, that asks for an investigation and for nothing else.
	bareLook = lazyregexp.New(`(?i)\b(?:audit|investigat\w*|survey|triage)\b|^\s*` + politely + `(?:analy[sz]e|explore|inspect|look(?:\s+around)?|review|scan)\s*(?:[.,;!]|and\b|then\b|$)`)
	// concernsDirectory is a prompt with a word about what an investigation shows of a directory.
	concernsDirectory = lazyregexp.New(`(?i)\b(?:here|this|these)\b` +
		`|\b(?:architectur|branch|bugs|code|commit|crash|depend|director|error|everything|exception|fail|files|findings|folder|histor|incident|issue|licen[sc]e|log|marker|module|outage|owner|package|problem|project|readme|release|repo|request|risk|secret|slow|source|structur|timeline|todo|tree|vulnerab|warning|workspace|wrong)\w*` +
		`|(?:^|\s)\.{0,2}/\S|\b[\w.-]+/(?:[\s.,;]|$)`)
	// inEnglish is a prompt whose words concernsDirectory can judge.
	inEnglish = lazyregexp.New(`(?i)\b(?:a|an|are|can|check|describe|do|does|explain|find|hello|hi|how|i|inspect|is|list|look|me|my|of|please|read|review|show|summari[sz]e|tell|the|was|what|when|where|who|you)\b`)
)

// asksForWork reports whether a prompt asks for work that an investigation of a directory does not do: a change, an
// answer about one file or one part, a reason, or something that has nothing to do with a directory. A report would not
// be that work, though the prompt may name one.
func asksForWork(asked string) bool {
	if asksForLaterChange(asked) || asksForAnswer(asked) {
		return true
	}
	switch {
	case makesReport.MatchString(asked):
		return false
	case asksForChange.MatchString(asked), asksForCode.MatchString(asked):
		return true
	case asksForText.MatchString(asked):
		return !writesFindings.MatchString(asked)
	}
	return inEnglish.MatchString(asked) && !bareLook.MatchString(asked) && !concernsDirectory.MatchString(asked)
}

// asksForLaterChange reports whether a prompt asks for a change after its first verb: "look around and fix …".
func asksForLaterChange(asked string) bool {
	for _, at := range laterChange.FindAllSubmatchIndex([]byte(asked), -1) {
		if !makesReport.MatchString(asked[at[2]:]) {
			return true
		}
	}
	return false
}

// asksForAnswer reports whether a prompt asks for something that needs understanding: what one file is about, why
// something happens, whether something works.
func asksForAnswer(asked string) bool {
	rest := reportFile.ReplaceAllString(asked, " ")
	if namesFile(rest) || onePart.MatchString(rest) && !bareLook.MatchString(rest) {
		return true
	}
	if asksForReason.MatchString(rest) || asksYesOrNo.MatchString(rest) && !isThere.MatchString(rest) {
		return true
	}
	return understands.MatchString(rest) && !wholePlace.MatchString(rest)
}

// namesFile reports whether a prompt names a file that is no log.
func namesFile(asked string) bool {
	for _, other := range []*lazyregexp.Regexp{noFileName, hostName, logFile} {
		asked = other.ReplaceAllString(asked, " ")
	}
	return fileName.MatchString(asked)
}

// instructions are files that agents of several programs read as their instructions.
var instructions = lazyregexp.New(`(?i)(?:^|/)(?:agents|claude|gemini|skill|copilot-instructions)\.(?:md|markdown)$|(?:^|/)\.`)

// NamedReport is the file that the prompt names for the report, if an investigation may write it without a question;
// otherwise "". A file that agents read as their instructions needs one.
func NamedReport(prompt string) string {
	name := reportName(prompt)
	if !reportFile.MatchString(prompt) || instructions.MatchString(name) {
		return ""
	}
	return name
}

// reportName is the file that the prompt names for the report.
func reportName(asked string) string {
	all := reportFile.FindAllStringSubmatch(asked, -1)
	if len(all) == 0 {
		return defaultReport
	}
	name := path.Clean(all[len(all)-1][1])
	if strings.Contains(name, "..") || path.IsAbs(name) {
		return defaultReport
	}
	return name
}
