package control

import (
	"github.com/troupe-run/troupe/internal/control/runimport"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/schedules"
)

// parts are what serves the verbs. Each has one job, and fields for the parts that it uses:
//
//	lookup       finds runs by the index and by their logs
//	owners       tells whose a run is
//	states       replays the logs of supervisors
//	views        makes the views of runs: rows, completed by what their logs have since
//	lanes        reads the lanes of conversations
//	schedules    makes, lists and deletes schedules
//	admission    refuses new runs for which there is no room
//	commander    appends what clients ask for: steering, answers, budget, policy
//	canceler     stops agents, through the supervisor or without it
//	remover      deletes runs that have ended, and prunes
//	histories    stores the histories with which runs begin
//	keeper       orders the runs of a conversation
//	attachments  keeps the files that will be attached to runs
//	restorer     restores runs from run files
//	opener       opens runs
//	viewer       lists and shows
type parts struct {
	cfg         *Config
	locks       *runLocks
	lookup      *lookup
	owners      *ownerCheck
	states      *runlog.SupervisorStates
	views       *runViews
	lanes       *laneLogs
	schedules   *schedules.Registry
	admission   *admission
	commander   *commander
	canceler    *canceler
	remover     *remover
	histories   *histories
	keeper      *laneKeeper
	attachments *attachments
	restorer    *runimport.Restorer
	opener      *opener
	viewer      *viewer
}

func newParts(cfg *Config) *parts {
	p := &parts{cfg: cfg, locks: &runLocks{}, states: runlog.NewSupervisorStates(), lookup: &lookup{cfg}, owners: &ownerCheck{cfg}}
	p.admission = &admission{cfg: cfg, lookup: p.lookup}
	p.schedules = schedules.NewRegistry(scheduleConfig(p))
	p.views = newRunViews(p)
	p.lanes = &laneLogs{cfg, p.lookup, p.owners, p.views}
	p.commander = &commander{cfg: cfg, lookup: p.lookup, views: p.views, states: p.states}
	p.canceler = &canceler{cfg, p.lookup, p.views, p.commander}
	p.remover = &remover{cfg, p.locks, p.lanes, p.schedules, p.canceler}
	p.histories = &histories{cfg, p.lookup, p.views, p.admission}
	p.keeper = newLaneKeeper(p)
	p.attachments = &attachments{cfg, p.locks, p.lookup, p.admission}
	imports := importConfig(p)
	p.restorer = runimport.NewRestorer(imports)
	p.opener = newOpener(p, runimport.NewForker(imports))
	p.viewer = &viewer{cfg: cfg, lookup: p.lookup, views: p.views, lanes: p.lanes, states: p.states}
	return p
}
