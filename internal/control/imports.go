package control

import (
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runimport"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/supervisor"
)

// importConfig is what forks and restored runs need of the control service.
func importConfig(p *parts) runimport.Config {
	cfg := p.cfg
	return runimport.Config{
		Store: cfg.Post, Index: cfg.Runs, Blobs: cfg.Blobs, Node: cfg.Name, Version: Version(), NoActors: cfg.NoActors, Now: cfg.Now, Redact: cfg.Redact,
		CheckRestored: cfg.CheckRestored, CheckRestoredChange: cfg.CheckRestoredChange, PlaceRestored: cfg.PlaceRestored, ForkModel: cfg.ForkModel,
		Lock: p.locks.lockRun, FindRun: p.lookup.findRun, CheckRoom: p.admission.checkRoom, CheckUnopened: p.admission.checkUnopened,
		CheckQueue: cfg.Queue.checkFull, CheckApprover: refuseAgentProgram, Answers: answerRules{},
	}
}

// answerRules are the rules of answers, for answers that a restore brings.
type answerRules struct{}

// Find is findQuestion in a run that has no row.
func (answerRules) Find(run string, s supervisor.Summary, r client.AnswerRequest) (supervisor.OpenQuestion, bool, error) {
	return findQuestion(runview.View{Row: runindex.Row{RunInfo: client.RunInfo{RunID: run}}, Summary: s}, r)
}

// Check is checkAnswer.
func (answerRules) Check(r client.AnswerRequest, q supervisor.OpenQuestion, now time.Time) error {
	return checkAnswer(r, q, now)
}

// Fact is answerFact.
func (answerRules) Fact(r client.AnswerRequest, q supervisor.OpenQuestion) agent.Answered {
	return answerFact(r, q)
}

// ID is answerID.
func (answerRules) ID(r client.AnswerRequest) string { return answerID(r) }
