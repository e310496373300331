package investigator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

const (
	defaultReport = "report.md"
	reportJSON    = "report.json"
	// coordinatorWaves bounds a coordinator whose calls never fit in one reply.
	coordinatorWaves = 12
)

// planCoordinator returns the coordinator's next step: look, delegate, write, answer.
func planCoordinator(t *conversation) plannedReply {
	inv := &investigation{reportName: reportName(t.asked), wanted: wantsReport.MatchString(t.asked), named: namesReport.MatchString(t.asked)}
	inv.changes = asksForWork(t.asked)
	inv.wanted = inv.wanted && !inv.changes
	look := []wantedCall{lookTop, lookTree}
	canCall := !t.closing && t.callReplies < coordinatorWaves
	if canCall {
		if calls := t.callsThatFit(t.missingCalls(look)); len(calls) > 0 {
			return plannedReply{calls: calls}
		}
	}
	switch {
	case !t.sawAnything() && inv.changes:
		return refuseOtherWork()
	case !t.sawAnything() && t.isClosedUnseen():
		return plannedReply{refuses: true, text: noRoom}
	case !t.sawAnything():
		return plannedReply{refuses: true, text: "I could see nothing here: " + strings.Join(append(t.describeGaps(look), "no other look was possible"), "; ") +
			". Nothing was reported or written. " + lookAdvice}
	}
	inv.profile = profileDirectory(t, inv.reportName)
	checks := inv.profile.logChecks()
	if canCall {
		if calls := t.callsThatFit(t.missingCalls(checks)); len(calls) > 0 {
			return plannedReply{calls: calls}
		}
	}
	inv.limits = append(t.describeGaps(append(look, checks...)), inv.profile.unreadLogs()...)
	if inv.profile.tree.complete && inv.profile.tree.files > 0 && len(inv.profile.tree.exts) == 0 {
		inv.limits = append(inv.limits, "languages: the list of files came without its extensions")
	}
	t.hints = inv.profile.childHints()
	t.hints.setLogs(inv.profile)
	if t.offered[toolDelegate] || t.hasDelegated() {
		team := inv.planDelegations()
		if canCall {
			if calls := t.callsThatFit(t.missingCalls(team)); len(calls) > 0 {
				return plannedReply{calls: calls}
			}
		}
		inv.readAnswers(t, team)
	} else if calls := inv.investigateAlone(t, canCall); len(calls) > 0 {
		return plannedReply{calls: calls}
	}
	inv.mergeAnswers()
	if canCall && inv.wanted {
		if calls := inv.planWrites(t); len(calls) > 0 {
			return plannedReply{calls: calls}
		}
	}
	return plannedReply{text: inv.finalMessage(t), refuses: inv.changes}
}

func (t *conversation) hasDelegated() bool {
	return slices.ContainsFunc(t.exchanges, func(ex toolExchange) bool { return ex.name == toolDelegate })
}

// investigatorNames returns the investigators for a kind of place.
func (p directoryProfile) investigatorNames() []string {
	switch p.kind {
	case directoryCode:
		if p.source == 0 {
			return []string{historian.name, surveyor.name}
		}
		return []string{historian.name, cartographer.name, auditor.name, dependencies.name}
	case directoryLogs:
		return []string{clusterer.name, timeline.name, correlator.name}
	case directoryOther:
		return []string{surveyor.name}
	}
	return nil
}

var taskOf = map[string]string{
	"historian":    "Read the git history: hot spots, owners, large commits, hot files without tests.",
	"cartographer": "Map the source: purpose, entry points, biggest files, tests.",
	"auditor":      "Audit the source: secrets, swallowed errors, dangerous calls, open markers.",
	"dependencies": "Read the dependency manifests: unpinned, abandoned, unlocked.",
	"clusterer":    "Group the error lines of the logs into templates.",
	"timeline":     "Find gaps, bursts and restarts in the logs.",
	"correlator":   "Follow the ids of failing requests across the log files.",
	"surveyor":     "Survey this folder: what is in it, what needs attention.",
}

// planDelegations lists the delegations, each with the hints that this child can use.
func (inv *investigation) planDelegations() []wantedCall {
	all := inv.profile.childHints()
	var wants []wantedCall
	for _, name := range inv.profile.investigatorNames() {
		h := hints{}
		switch name {
		case historian.name:
			h.Exts = all.Exts
		case cartographer.name:
			h = all
		case auditor.name:
			h.Exts, h.Files = all.Exts, all.Files
		case dependencies.name:
			h.Root = all.Root
		case clusterer.name, timeline.name, correlator.name:
			h.setLogs(inv.profile)
		}
		task := taskOf[name]
		if line := h.encodeLine(); line != "" {
			task += "\n" + line
		}
		wants = append(wants, wantedCall{name: toolDelegate, args: map[string]any{"agent": name, "task": task}, label: name})
	}
	return wants
}

// readAnswers reads the answers of the children.
func (inv *investigation) readAnswers(t *conversation, team []wantedCall) {
	for _, w := range team {
		ex, made := t.findExchange(w)
		if !made || !ex.answered || ex.failed {
			continue
		}
		a := readAnswer(w.label, ex.text)
		if a.stopped != "" {
			inv.incomplete = append(inv.incomplete, w.label+" stopped early ("+a.stopped+")")
		}
		if len(a.Findings)+len(a.Facts)+len(a.Limits) == 0 && !strings.HasPrefix(a.Summary, w.label+": ") {
			a.addLimit("%s gave no machine-readable finding", w.label)
		}
		inv.answers = append(inv.answers, a)
	}
	for _, gap := range t.describeGaps(team) {
		gap = strings.Replace(gap, toolDelegate+" failed", "could not be had", 1)
		inv.limits = append(inv.limits, gap)
		inv.incomplete = append(inv.incomplete, gap)
	}
}

// investigateAlone does the children's work with the coordinator's own tools, in a run without
// delegation.
func (inv *investigation) investigateAlone(t *conversation, canCall bool) []wantedCall {
	all := jobsByName()
	inv.limits = append(inv.limits, "delegation was not offered: the coordinator looked alone")
	var wants []wantedCall
	for _, name := range inv.profile.investigatorNames() {
		wants = append(wants, all[name].listCalls(t)...)
	}
	if canCall {
		if calls := t.callsThatFit(t.missingCalls(wants)); len(calls) > 0 {
			return calls
		}
	}
	for _, name := range inv.profile.investigatorNames() {
		a := all[name].buildAnswer(t)
		for i := range a.Findings {
			a.Findings[i].Agent = coordinatorName
			if a.Findings[i].Detail == "" {
				a.Findings[i].Detail = kindReasons[a.Findings[i].Kind]
			}
		}
		inv.answers = append(inv.answers, a)
	}
	inv.limits = append(inv.limits, t.describeGaps(wants)...)
	return nil
}

// investigation is the content of the report.
type investigation struct {
	profile    directoryProfile
	answers    []agentAnswer
	findings   []finding
	limits     []string
	facts      []fact
	reportName string
	wanted     bool     // a report file, not only an answer
	named      bool     // the prompt asks for that file: without it the task has failed
	changes    bool     // the prompt asks for work that an investigation does not do
	incomplete []string // parts that a child did not finish, each with its reason
}

// mergeAnswers joins the children's answers: each claim once, severe ones first, and among equals
// those in files that change often.
func (inv *investigation) mergeAnswers() {
	hot := map[string]bool{}
	seen := map[string]bool{}
	for _, a := range inv.answers {
		inv.facts = append(inv.facts, a.Facts...)
		inv.limits = append(inv.limits, a.Limits...)
		for _, f := range a.Findings {
			for _, e := range f.Evidence {
				hot[e.Path] = hot[e.Path] || f.Kind == kindChurn
			}
			key := fmt.Sprint(f.Kind, f.Title, f.Evidence[0])
			if f.Kind == kindLicense {
				key = f.Kind // the file and the manifest report the same
			}
			if !seen[key] {
				seen[key] = true
				inv.findings = append(inv.findings, f)
			}
		}
	}
	for i, f := range inv.findings {
		if f.Kind == kindChurn || f.Kind == kindUntested {
			continue
		}
		if p := f.Evidence[0].Path; hot[p] && f.Evidence[0].Line > 0 {
			inv.findings[i].Detail = strings.TrimSuffix(f.Detail, ".") + "; " + p + " is also a hot spot"
		}
	}
	inv.findings = sortBySeverity(inv.findings)
	slices.Sort(inv.limits)
	inv.limits = slices.Compact(inv.limits)
}

func (inv *investigation) factsNamed(name string) []string {
	var all []string
	for _, f := range inv.facts {
		if f.name == name {
			all = append(all, f.value)
		}
	}
	return all
}

// summaryLine counts the findings. That there are none means little if much was not examined.
func (inv *investigation) summaryLine() string {
	if len(inv.findings) == 0 && len(inv.limits) > 0 {
		return "No findings, and not everything was looked at: see what was not seen"
	}
	return strings.Join(append([]string{countBySeverity(inv.findings)}, inv.factsNamed(factFailing)...), "; ")
}

// countBySeverity returns how many findings there are of each severity.
func countBySeverity(fs []finding) string {
	var parts []string
	for _, s := range severities {
		n := 0
		for _, f := range fs {
			if f.Severity == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		return "No findings"
	}
	return formatCount(len(fs), "finding") + ": " + strings.Join(parts, ", ")
}

const (
	finalTop    = 5
	finalLimits = 4
	finalFacts  = 8
)

// finalMessage returns the last message: the path of the report, the findings, and the parts that were
// not examined. Its end may be cut off where few tokens are left.
func (inv *investigation) finalMessage(t *conversation) string {
	var b strings.Builder
	b.WriteString(inv.profile.describeDirectory() + "\n")
	if gaps := inv.describeIncomplete(); gaps != "" {
		b.WriteString(gaps + "\n")
	}
	if !inv.wanted {
		if inv.changes {
			b.WriteString(NeedsModel + " ")
		}
		b.WriteString("I only investigate directories; this is what an investigation shows.\n")
		for i, f := range inv.facts {
			if i == finalFacts {
				break
			}
			if f.name != factHot {
				b.WriteString("- " + factTitle(f.name) + ": " + f.value + "\n")
			}
		}
	}
	b.WriteString(inv.summaryLine() + ".\n")
	lost := ""
	if inv.wanted {
		var text string
		text, lost = inv.describeWrites(t)
		b.WriteString(text + "\n")
	}
	for i, f := range inv.findings {
		if i == finalTop {
			fmt.Fprintf(&b, "… and %d more.\n", len(inv.findings)-i)
			break
		}
		fmt.Fprintf(&b, "%d. [%s] %s (%s)\n", i+1, f.Severity, f.Title, f.Evidence[0].formatPosition())
	}
	if n := len(inv.limits); n > 0 {
		b.WriteString("Not seen: " + strings.Join(inv.limits[:min(n, finalLimits)], "; "))
		if n > finalLimits {
			fmt.Fprintf(&b, "; and %d more", n-finalLimits)
		}
		b.WriteString(".\n")
	}
	if gaps := inv.describeIncomplete(); gaps != "" {
		b.WriteString(gaps + " ")
	}
	text := b.String() + notAnLLM + "."
	if lost != "" && inv.named { // a report that was asked for and is not there is no success
		return spec.FailedMark + " " + lost + "\n" + text
	}
	return text
}
